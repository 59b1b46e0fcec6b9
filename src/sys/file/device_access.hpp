// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::sys {

/// Whether this process's device cgroup forbids reading the node `path`: a GPU's capability node
/// has no other use, and no cgroup allows the rest of a device alone. Does not open the node, so no
/// device is woken: access(2) consults the cgroup too, and only the cgroup gives EPERM (a mode that
/// forbids it gives EACCES). False in doubt.
bool is_denied_by_cgroup(const std::string& path);

}  // namespace berth::sys
