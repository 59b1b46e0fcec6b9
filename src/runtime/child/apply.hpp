// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process. Capabilities: all of its user namespace until
// set_capabilities. Hostile: the root file system. The plan was made from a config that the caller
// chose, but that a user with fewer rights may have written.
#pragma once

#include "runtime/child/inside.hpp"

namespace berth::runtime {

/// Executes the steps of `plan` that follow Spawn. Before the first step the process moves itself
/// into its v1 cgroups through `tasks_files`, the result of CgroupSet::open_tasks_files(). When a
/// step fails, it reports the error to the parent and ends the process. Never returns: the last
/// step executes the container's program.
[[noreturn]] void apply(const plan::Plan& plan, const Prepared& prepared, Channel channel,
                        std::vector<sys::Fd> tasks_files);

}  // namespace berth::runtime
