// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// The ulimits that were asked for, as far as this process can give them: only root with
/// CAP_SYS_RESOURCE raises a hard limit. An ordinary user gets what he may have, with a warning for
/// each, so that the line that everybody pastes works for him too.
/// Errors: denied (root without that capability).  setrlimit(2)
Result<std::vector<Ulimit>> permitted_ulimits(const Context& context,
                                              const std::vector<Ulimit>& asked);

/// "nofile=20000:20000" for buildah's --ulimit, of each limit that buildah would raise for RUN to
/// more than this process may: without it no RUN starts. Those of `asked` ("nofile=1024") are left
/// out. Errors: io. Source: buildah 1.39, run_linux.go, addRlimits(); define.RLimitDefaultValue.
Result<std::vector<std::string>> limits_for_buildah(const Context& context,
                                                    const std::vector<std::string>& asked);

/// The --oom-score-adj that was asked for, in the same way: one below what the kernel lets this
/// process have is root's with CAP_SYS_RESOURCE alone.
/// Errors: denied (root without that capability), io.  proc(5)
Result<std::optional<int64_t>> permitted_oom_score(const Context& context,
                                                   std::optional<int64_t> asked);

}  // namespace berth::engine
