// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process. Capabilities: all of its user namespace until
// set_capabilities. Hostile: the root file system; the plan was decided from a config that the
// caller chose and may have been written by somebody with fewer rights.
#pragma once

#include "runtime/inside.hpp"

namespace berth::runtime {

/// CLONE_NEW* of the namespaces that are new. Not of the cgroup namespace: its root is where the
/// process is when it is made, so the process makes it later.
uint64_t created_namespaces(const plan::Spawn& spawn);

/// What is made in a user namespace belongs to it, and its root has rights over no other: where one
/// is joined, the new namespaces come after it, with a second birth.
bool joins_user_namespace(const plan::Spawn& spawn);

/// Executes the steps of `plan` that follow Spawn, tells the parent when one fails, and ends the
/// process then. Before all, it goes through `doors`: CgroupSet::open_doors(). Never returns: the
/// last step becomes the container's program.
[[noreturn]] void apply(const plan::Plan& plan, const Prepared& prepared, Channel channel,
                        std::vector<sys::Fd> doors);

}  // namespace berth::runtime
