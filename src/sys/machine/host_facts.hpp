// SPDX-License-Identifier: Apache-2.0
// Features of this machine.
#pragma once

namespace berth::sys {

/// Whether cgroups, v1 or v2, are mounted at /sys/fs/cgroup. statfs(2)
bool has_cgroups();

/// Whether AppArmor, SELinux and resctrl are available and enabled. apparmor(7), selinux(8), kernel
/// resctrl.rst
bool has_apparmor();
bool has_selinux();
bool has_resctrl();

/// Whether the running kernel has Landlock enabled. landlock_create_ruleset(2)
bool has_landlock();
/// Whether this process may use io_uring. io_uring_setup(2)
bool has_io_uring();

/// Whether `gid` exists in the user namespace of this process (/proc/self/gid_map).
bool is_group_mapped(unsigned gid);

}  // namespace berth::sys
