// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process. Capabilities: all of its user namespace until
// set_capabilities. Hostile: the root file system; the plan was decided from a config that the
// caller chose and may have been written by somebody with fewer rights.
#pragma once

#include "runtime/child/inside.hpp"

namespace berth::runtime {

/// Executes the steps of `plan` that follow Spawn, tells the parent when one fails, and ends the
/// process then. First it moves itself by `tasks_files`, of CgroupSet::open_tasks_files(). Never
/// returns: the last step becomes the container's program.
[[noreturn]] void apply(const plan::Plan& plan, const Prepared& prepared, Channel channel,
                        std::vector<sys::Fd> tasks_files);

}  // namespace berth::runtime
