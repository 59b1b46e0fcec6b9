// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// The descriptors that berth-mps inherits.
struct Handed {
  sys::Fd lock;    ///< the share's kMpsKeeper, locked
  sys::Fd shares;  ///< kMpsLock, locked until the share has begun
  sys::Fd report;  ///< receives kMpsBegun, or the error
};
inline constexpr std::string_view kMpsBegun = "begun";

/// The work of berth-mps for the share `name` below `state_dir`; the share's directory has the
/// MpsOrder. Starts the daemon and restarts it when it dies. When no lease of this user names the
/// share any more, ends the daemon and removes everything of the share. `self` is the path of
/// berth-mps.
/// Errors: those of MpsDaemon::start(). On an error the share is removed, unless containers compute
/// through it: then the start of the daemon is tried again until it succeeds.
Result<void> keep_share(const std::string& self, const std::string& state_dir,
                        const std::string& name, Handed handed);

}  // namespace berth::gpu
