// SPDX-License-Identifier: Apache-2.0
// What the plan of a container has to know of this machine.
#pragma once

namespace berth::sys {

/// Whether cgroups are mounted in their place, of whatever version. statfs(2)
bool has_cgroups();

/// Whether AppArmor, SELinux and the control of caches and memory bandwidth are there and switched
/// on. apparmor(7), selinux(8), kernel resctrl.rst
bool has_apparmor();
bool has_selinux();
bool has_resctrl();

/// True when `gid` exists in the user namespace of this process (/proc/self/gid_map).
bool is_group_mapped(unsigned gid);

}  // namespace berth::sys
