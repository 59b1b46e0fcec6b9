// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, while the container's process waits. Capabilities: the caller's; needs
// CAP_NET_ADMIN over both network namespaces. Hostile input: none; names come from the config, and
// no process of the container runs yet.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"
#include "plan/plan.hpp"

namespace berth::runtime {

/// Moves interfaces of this network namespace into the network namespace of process `pid`, or into
/// that of `joined` if the container joins one by path. There they get their new names and their
/// permanent global addresses, and are up. An interface that cannot be configured there is moved
/// back. Errors: not_found (no such interface), exists (the new name), usage (the namespace is our
/// own), denied; each names the interface.
Result<void> move_interfaces(const plan::MoveInterfaces& step, const plan::Spawn& spawn, pid_t pid);

}  // namespace berth::runtime
