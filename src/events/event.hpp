// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

/// What has happened on this machine, written down by the process that did it: there is no daemon
/// that would know. The words are docker's (docker events).
namespace berth::events {

struct Event {
  std::string type;    ///< "container", "image", "volume"
  std::string action;  ///< "start", "health_status: healthy", "exec_create: sh -c ls"
  std::string id;      ///< 64 digits of a container, "sha256:…" or a name of an image, a name
  std::map<std::string, std::string> attributes = {};  ///< of a container: only what is new
  int64_t time_ns = 0;                                 ///< since 1970; append() sets it
};

}  // namespace berth::events
