// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The small files of a container's directory as structs with their field tables.
namespace berth::engine {

/// The first line of container.json, written once, before the start.
struct ContainerRecord {
  std::string id;
  std::string name;
  std::string image;                 ///< as it was asked for
  std::string image_id;              ///< "sha256:…"
  std::vector<std::string> command;  ///< entrypoint and arguments
  int64_t created_at = 0;            ///< seconds since 1970
  bool remove = false;               ///< --rm
  bool detached = false;
  bool terminal = false;
  int stop_signal = 15;  ///< what `stop` sends first
};
template <class V>
void fields(V& v, ContainerRecord& r) {
  v.required("id", r.id);
  v.required("name", r.name);
  v.required("image", r.image);
  v.required("image_id", r.image_id);
  v.required("command", r.command);
  v.required("created_at", r.created_at);
  v.required("remove", r.remove);
  v.required("detached", r.detached);
  v.required("terminal", r.terminal);
  v.optional("stop_signal", r.stop_signal);
}

/// The second line of container.json, appended by the owner at the end: who waits for a container
/// of
/// --rm holds the file open and reads it there even when it was removed. Without it a container
/// whose owner is gone is dead. The monitor writes the same members (monitor/monitor.cpp).
struct ExitRecord {
  std::optional<int> exit_code;  ///< none: the owner was killed, nobody saw the end
  int64_t finished_at = 0;       ///< seconds since 1970
};
template <class V>
void fields(V& v, ExitRecord& r) {
  v.always("exit_code", r.exit_code);
  v.required("finished_at", r.finished_at);
}

inline constexpr const char* kRecordFile = "container.json";
inline constexpr const char* kLogFile = "log";

}  // namespace berth::engine
