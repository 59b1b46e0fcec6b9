// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "gpu/mps/share.hpp"

namespace berth::gpu {

/// Makes sure that the daemon of `order.share` answers. Whoever calls this has a lease that names
/// the share; the share stays as long as one does. `program` is berth-mps.
/// Errors: unsupported (no daemon can be had: why), busy (others begin and end shares all the
/// time), interrupted (the daemon does not answer), io.
Result<void> join_share(const std::string& state_dir, const std::string& program,
                        const MpsOrder& order);

/// Gives shares whose keeper was killed a new one, which ends them where nobody is left. Quiet:
/// what cannot be done now is for the next one.
void mend_shares(const std::string& state_dir, const std::string& program);

}  // namespace berth::gpu
