// SPDX-License-Identifier: Apache-2.0
#include "monitor/restart.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::monitor {

RestartPolicy restart_policy(std::string_view text) {
  using When = RestartPolicy::When;
  RestartPolicy policy;
  text = trim(text);
  std::string_view name = text.substr(0, text.find(':'));
  if (name == "always") policy.when = When::always;
  if (name == "unless-stopped") policy.when = When::unless_stopped;
  if (name == "on-failure") policy.when = When::on_failure;
  if (name.size() < text.size()) {
    auto most = parse_u64(text.substr(name.size() + 1));
    // As in docker, 0 means no limit.
    if (most && *most > 0 && *most < 1'000'000) policy.most = static_cast<int>(*most);
  }
  return policy;
}

bool is_to_restart(const RestartPolicy& policy, std::optional<int> status, int restarts,
                   Stopped stopped) {
  using When = RestartPolicy::When;
  if (stopped == Stopped::yes) return false;
  switch (policy.when) {
    case When::no:
      return false;
    case When::always:
    case When::unless_stopped:
      return true;
    case When::on_failure:
      return status != 0 && (!policy.most || restarts < *policy.most);
  }
  return false;
}

std::chrono::milliseconds next_pause(std::chrono::milliseconds last, std::chrono::seconds lived) {
  constexpr std::chrono::milliseconds kFirst{100};
  constexpr std::chrono::milliseconds kLongest{60'000};
  constexpr std::chrono::seconds kGoodLife{10};
  if (last.count() == 0 || lived >= kGoodLife) return kFirst;
  return std::min(last * 2, kLongest);
}

}  // namespace berth::monitor
