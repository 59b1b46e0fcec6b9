// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// The descriptors that berth-mps inherits.
struct Handed {
  sys::Fd lock;    ///< of the share's kMpsKeeper, held
  sys::Fd shares;  ///< of kMpsLock, held until the share has begun
  sys::Fd report;  ///< receives kMpsBegun, or the error
};
inline constexpr std::string_view kMpsBegun = "begun";

/// The work of berth-mps for the share `name` below `state_dir`, with its order in its directory:
/// starts the daemon, restarts it when it dies, and ends it, with everything of the share, when no
/// lease of this user names the share any more. `self` is the program.
/// Errors: as MpsDaemon::start(); then nothing of the share is left, unless containers compute
/// through it: those get a daemon as soon as one can run.
Result<void> keep_share(const std::string& self, const std::string& state_dir,
                        const std::string& name, Handed handed);

}  // namespace berth::gpu
