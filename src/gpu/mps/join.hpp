// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "gpu/mps/share.hpp"

namespace berth::gpu {

/// Makes sure that the daemon of `order.share` answers. The caller holds a lease that names the
/// share; the share stays while any such lease exists. `program` is berth-mps.
/// Errors: unsupported (no daemon can run: why), busy (others keep starting and ending shares),
/// interrupted (the daemon does not answer), io.
Result<void> join_share(const std::string& state_dir, const std::string& program,
                        const MpsOrder& order);

/// Starts a new keeper (berth-mps) for every share that has none any more. The keeper ends the
/// share if no container is left. Failures are ignored; the next call tries again.
void mend_shares(const std::string& state_dir, const std::string& program);

}  // namespace berth::gpu
