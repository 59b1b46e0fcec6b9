// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/decision.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/gpu/lease.hpp"

namespace berth::engine {

/// Decides everything about container `id`: user, command, environment, mounts, limits, GPUs. Reads
/// the image's passwd files and the machine; creates only what many containers share.
/// Errors: not_found (user, group, working directory, GPU), usage, unsupported, denied.
Result<Decision> decide(const Context& context, const Resolved& resolved, const std::string& id,
                        Leasing leasing);

/// Creates the lowest layer, which all containers of a store share: empty directories and files
/// where every container has a mount, so that mounting writes nothing into the container's own
/// layer. Returns its absolute path.
Result<std::string> mountpoint_layer(const std::string& root);

}  // namespace berth::engine
