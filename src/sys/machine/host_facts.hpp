// SPDX-License-Identifier: Apache-2.0
// What this machine has.
#pragma once

namespace berth::sys {

/// Whether cgroups are mounted in their place, of whatever version. statfs(2)
bool has_cgroups();

/// Whether AppArmor, SELinux and the control of caches and memory bandwidth are there and switched
/// on. apparmor(7), selinux(8), kernel resctrl.rst
bool has_apparmor();
bool has_selinux();
bool has_resctrl();

/// Whether the running kernel has Landlock switched on. landlock_create_ruleset(2)
bool has_landlock();
/// Whether it lets this process use io_uring. io_uring_setup(2)
bool has_io_uring();

/// True when `gid` exists in the user namespace of this process (/proc/self/gid_map).
bool is_group_mapped(unsigned gid);

}  // namespace berth::sys
