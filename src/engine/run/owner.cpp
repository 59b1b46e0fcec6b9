// SPDX-License-Identifier: Apache-2.0
#include "engine/run/owner.hpp"

#include "engine/container/health_settings.hpp"

namespace berth::engine {

Owner owner_of(const Resolved& resolved) {
  const RunRequest& request = resolved.request();
  const RunCall& call = resolved.call();
  // A foreground container has no monitor: all streams must be the caller's, and no health check
  // may be set.
  bool shows_all = is_attached(call, "stdout") && is_attached(call, "stderr");
  bool is_callers = request.remove && !request.terminal && !call.detach && shows_all &&
                    !health_check(request.health, resolved.image().config.config);
  return is_callers ? Owner::caller : Owner::monitor;
}

}  // namespace berth::engine
