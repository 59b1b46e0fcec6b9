// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/host_facts.hpp"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {

bool has_cgroups() {
  struct statfs info {};
  if (::statfs("/sys/fs/cgroup", &info) != 0) return false;
  auto type = static_cast<long>(info.f_type);
  return type == CGROUP2_SUPER_MAGIC || type == TMPFS_MAGIC;  // v1 hierarchies are in a tmpfs
}

bool has_apparmor() {
  auto enabled = read_file(cwd(), "/sys/module/apparmor/parameters/enabled", 16);
  return enabled.ok() && enabled->starts_with("Y");
}

bool has_selinux() {
  struct statfs info {};
  return ::statfs("/sys/fs/selinux", &info) == 0 && static_cast<long>(info.f_type) == SELINUX_MAGIC;
}

bool has_resctrl() {
  struct statfs info {};
  return ::statfs("/sys/fs/resctrl", &info) == 0 &&
         static_cast<long>(info.f_type) == RDTGROUP_SUPER_MAGIC;
}

bool has_landlock() {
  constexpr unsigned kAskVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  return ::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, kAskVersion) > 0;
}

bool has_io_uring() {
  // Without parameters the call fails with EFAULT if io_uring is available.
  return ::syscall(SYS_io_uring_setup, 1, nullptr) < 0 && errno == EFAULT;
}

bool is_group_mapped(unsigned gid) {
  auto map = read_file(cwd(), "/proc/self/gid_map", 65536);
  if (!map.ok()) return true;  // no user namespaces here: every group exists
  for (std::string_view line : split(*map, '\n')) {
    auto words = split_blank(line);
    if (words.size() != 3) continue;
    auto inside = parse_u64(words[0]);
    auto count = parse_u64(words[2]);
    if (inside && count && gid >= *inside && gid - *inside < *count) return true;
  }
  return false;
}

}  // namespace berth::sys
