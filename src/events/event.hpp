// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

/// Events on this machine, recorded by the process that caused them: no daemon would know of them.
/// The words are docker's (docker events).
namespace berth::events {

struct Event {
  std::string type;    ///< "container", "image", "volume"
  std::string action;  ///< "start", "health_status: healthy", "exec_create: sh -c ls"
  std::string id;      ///< 64 digits of a container, "sha256:…" or a name of an image, a name
  std::map<std::string, std::string> attributes = {};  ///< of a container: only new ones
  int64_t time_ns = 0;                                 ///< since 1970; append() sets it
};

}  // namespace berth::events
