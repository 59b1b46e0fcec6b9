// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace berth::monitor {

/// The restart policy, --restart, with the same meaning as Docker's.
struct RestartPolicy {
  enum class When { no, on_failure, always, unless_stopped };
  When when = When::no;
  std::optional<int> most;  ///< of on_failure: the maximal number of restarts
};

/// "no", "on-failure", "on-failure:3", "always", "unless-stopped". Any other text means "no": berth
/// has validated the text.
RestartPolicy restart_policy(std::string_view text);

enum class Stopped { no, yes };
/// Whether to restart a container that ended with `status` (none: unknown) after `restarts`
/// restarts. A container that the user has ended is not restarted.
bool is_to_restart(const RestartPolicy& policy, std::optional<int> status, int restarts,
                   Stopped stopped);

/// The pause before the next start, as docker's: 100 ms at first, doubled each time, at most a
/// minute. It starts again at 100 ms after the container has run for 10 s.
std::chrono::milliseconds next_pause(std::chrono::milliseconds last, std::chrono::seconds lived);

}  // namespace berth::monitor
