// SPDX-License-Identifier: Apache-2.0
#include "sys/cgroup_kind.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/text.hpp"
#include "sys/file.hpp"

namespace berth::sys {
namespace {

bool is_type(const std::string& path, long magic) {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 && static_cast<long>(info.f_type) == magic;
}

}  // namespace

CgroupKind cgroup_kind(const std::string& mount) {
  if (is_type(mount, CGROUP2_SUPER_MAGIC)) return CgroupKind::unified;
  if (!is_type(mount, TMPFS_MAGIC)) return CgroupKind::none;
  return is_type(mount + "/unified", CGROUP2_SUPER_MAGIC) ? CgroupKind::hybrid : CgroupKind::legacy;
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
