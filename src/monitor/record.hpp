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
  std::string error = {};  ///< why it could not be restarted
  bool stopped = false;    ///< the user has ended it
};
/// Errors: io.
Result<void> append_exit(const std::string& files, const Exit& exit);

/// The content of the last lines, for a monitor that takes over.
struct Known {
  bool started = false;  ///< there is a line for `pid`
  bool restarting = false;
  int restarts = 0;
};
/// The container's name; empty without a record.
std::string read_name(const std::string& files);
/// Whether the last line about pausing says so.
bool is_paused(const std::string& files);
Known read_lines(const std::string& files, int32_t pid);

}  // namespace berth::monitor
