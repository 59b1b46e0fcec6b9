// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/decide/resolve.hpp"

namespace berth::engine {

/// The process that will own a container once it is created.
enum class Owner {
  caller,   ///< this process, in the foreground
  monitor,  ///< berth-monitor
  nobody,   ///< none yet: `create`
};

/// The owner of a container that is run. It is the caller if only the caller uses the container: no
/// detaching, all output goes to the caller, and the container is removed at the end
/// (docs/decisions/0008).
Owner owner_of(const Resolved& resolved);

}  // namespace berth::engine
