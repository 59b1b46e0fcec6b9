// SPDX-License-Identifier: Apache-2.0
// What happens with a limit that no cgroup can hold: refuse_or_warn().
#pragma once

#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/cgroup/layout.hpp"

namespace berth::runtime {

struct CgroupWrite;

/// A requested limit that could not be set, e.g. {"memory.limit", "no permission for
/// '/sys/fs/cgroup/memory'"}. refuse_or_warn() decides.
struct UnmetLimit {
  std::string name;  ///< the member of linux.resources: "memory.limit", "devices"
  std::string reason;
};

/// Why a limit has no directory in `hierarchy`, and what would help.
std::string why_no_permission(const CgroupLayout& layout, const CgroupHierarchy& hierarchy);
/// Why no hierarchy could take `write`.
std::string why_left(const CgroupLayout& layout, const CgroupWrite& write);

enum class Unmet { warns_users, is_error };

/// Makes of a limit that no cgroup can hold an error or a warning:
/// - refused: one of linux.resources.unified, for every caller: "The runtime MUST generate an error
///   when the configuration refers to a cgroup controller that is not present or that cannot be
///   enabled" (runtime-spec config-linux.md);
/// - refused: any other for root of the machine, who can set every limit: the container would be
///   less confined than promised. With Unmet::is_error also for other users, except "devices";
/// - a warning: "memory.swap", for all, because many kernels do not count swap, as in docker;
/// - a warning: any other limit of other users, who can set only what was delegated to them;
/// - neither: "devices" of other users. In a user namespace the container has no device nodes but
///   those that were bound.
/// Errors: unsupported.
Result<void> refuse_or_warn(const UnmetLimit& unmet, Unmet strictly, Log& log);

}  // namespace berth::runtime
