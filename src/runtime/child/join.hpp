// SPDX-License-Identifier: Apache-2.0
// Runs as: a process of the container before its program. Capabilities: the caller's, then all of
// the user namespace that it enters. Hostile: paths of namespaces come from the config; processes
// in the container see exec's process as soon as it is in their pid namespace.
#pragma once

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "runtime/child/inside.hpp"

namespace berth::runtime {

/// For a new container: joins the existing namespaces of `step`, and makes those that need the
/// rights of a user namespace that was entered. May go on in another process (namespaces.hpp).
Result<void> enter_namespaces(const plan::Plan& plan, Inside& inside, const plan::Spawn& step);

/// How exec enters a container: (1) one setns() on the pidfd of its first process, for all
/// namespaces that are not ours already; (2) chroot, where the container's root is not that of its
/// mount namespace; (3) the descriptors of the host are closed; (4) another fork, because a pid
/// namespace takes in only children; (5) the ids of the user namespace's root.
Result<void> join_container(const plan::Plan& plan, Inside& inside,
                            const plan::JoinContainer& step);

}  // namespace berth::runtime
