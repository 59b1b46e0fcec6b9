// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace berth::monitor {

/// --restart, as Docker has it.
struct RestartPolicy {
  enum class When { no, on_failure, always, unless_stopped };
  When when = When::no;
  std::optional<int> most;  ///< of on_failure: how often at most
};

/// "no", "on-failure", "on-failure:3", "always", "unless-stopped"; anything else is "no": berth has
/// checked it.
RestartPolicy restart_policy(std::string_view text);

/// Whether a container that ended with `status` (none: nobody knows) after `restarts` restarts is
/// to be started again. One that a person has ended is not.
enum class Stopped { no, yes };
bool is_to_restart(const RestartPolicy& policy, std::optional<int> status, int restarts,
                   Stopped stopped);

/// How long to wait before the next start, docker's way: 100 ms at first, twice as long each time,
/// at most a minute; from the beginning again after a container that lived for 10 s.
std::chrono::milliseconds next_pause(std::chrono::milliseconds last, std::chrono::seconds lived);

}  // namespace berth::monitor
