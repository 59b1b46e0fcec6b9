// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// The requested ulimits, as far as this process can set them: only root with CAP_SYS_RESOURCE can
/// raise a hard limit. An ordinary user gets the highest permitted value and a warning instead, so
/// that widely copied command lines work.
/// Errors: denied (root without that capability).  setrlimit(2)
Result<std::vector<Ulimit>> permitted_ulimits(const Context& context,
                                              const std::vector<Ulimit>& asked);

/// Values for buildah's --ulimit, such as "nofile=20000:20000": one for each limit that buildah
/// would raise for RUN above what this process may set. Without these values no RUN would start.
/// Skips the limits that `asked` names ("nofile=1024"). Errors: io. Source: buildah 1.39,
/// run_linux.go, addRlimits(); define.RLimitDefaultValue.
Result<std::vector<std::string>> limits_for_buildah(const Context& context,
                                                    const std::vector<std::string>& asked);

/// The requested --oom-score-adj, handled like a ulimit: only root with CAP_SYS_RESOURCE can go
/// below the minimum of this process.
/// Errors: denied (root without that capability), io.  proc(5)
Result<std::optional<int64_t>> permitted_oom_score(const Context& context,
                                                   std::optional<int64_t> asked);

}  // namespace berth::engine
