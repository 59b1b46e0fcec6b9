// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::sys {

/// Whether this process's device cgroup keeps it from reading the node `path`: a GPU's capability
/// has no other use, and no cgroup allows the rest of a device alone. The node is not opened, so no
/// device is woken: the kernel asks the cgroup for access(2) too, and EPERM is the cgroup's word
/// alone (a mode that says no is EACCES). False where nothing can be told.
bool is_denied_by_cgroup(const std::string& path);

}  // namespace berth::sys
