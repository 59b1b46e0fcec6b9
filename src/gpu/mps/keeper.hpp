// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// What berth-mps inherits.
struct Handed {
  sys::Fd lock;    ///< of the share's kMpsKeeper, held
  sys::Fd shares;  ///< of kMpsLock, held until the share has begun
  sys::Fd report;  ///< told kMpsBegun, or why not
};
inline constexpr std::string_view kMpsBegun = "begun";

/// What berth-mps does for the share `name` below `state_dir`, whose directory holds its order:
/// starts the daemon, starts it again when it dies, and ends it, with all that the share has, when
/// no lease of this user names the share any more. `self` is the program.
/// Errors: as MpsDaemon::start(); then nothing of the share is left, but where containers compute
/// through it: those get a daemon as soon as there can be one.
Result<void> keep_share(const std::string& self, const std::string& state_dir,
                        const std::string& name, Handed handed);

}  // namespace berth::gpu
