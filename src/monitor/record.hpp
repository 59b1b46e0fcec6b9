// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace berth::monitor {

using Clock = std::chrono::system_clock;

/// Lines that the monitor appends to container.json; record/record.hpp reads them.
struct Start {
  int32_t pid = 0;
  int restarts = 0;
};
/// Errors: io.
Result<void> append_start(const std::string& files, const Start& start);

enum class Restarting { no, yes };
struct Exit {
  std::optional<int> code;  ///< none: unknown
  Restarting restarting = Restarting::no;
  bool oom_killed = false;
  std::string error = {};  ///< why the container could not be restarted
  bool stopped = false;    ///< a user has ended the container
};
/// Errors: io.
Result<void> append_exit(const std::string& files, const Exit& exit);

/// What the last lines of container.json say, for a monitor that takes over.
struct Known {
  bool started = false;  ///< there is a line for `pid`
  bool restarting = false;
  int restarts = 0;
};
/// The container's name; empty without a record.
std::string read_name(const std::string& files);
/// Whether the container is paused, by the last line about pausing.
bool is_paused(const std::string& files);
Known read_lines(const std::string& files, int32_t pid);

}  // namespace berth::monitor
