// SPDX-License-Identifier: Apache-2.0
#include "sys/file/file_system.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/text.hpp"

namespace berth::sys {
namespace {

struct Name {
  int64_t type;
  std::string_view name;
};
// Source: linux/magic.h, statfs(2), and the kernel's own headers of network file systems.
constexpr std::array kNames = {
    Name{0xef53, "ext4"},         Name{0x58465342, "xfs"},    Name{0x9123683e, "btrfs"},
    Name{0x01021994, "tmpfs"},    Name{0x6969, "nfs"},        Name{0x2fc12fc1, "zfs"},
    Name{0x794c7630, "overlay"},  Name{0x0bd00bd0, "lustre"}, Name{0x47504653, "gpfs"},
    Name{0x65735546, "fuse"},     Name{0x00c36400, "ceph"},   Name{0xff534d42, "cifs"},
    Name{0xfe534d42, "smb2"},     Name{0xf2f52010, "f2fs"},   Name{0x01021997, "9p"},
    Name{0x73717368, "squashfs"}, Name{0x858458f6, "ramfs"},  Name{0x19830326, "beegfs"},
};

}  // namespace

Result<FileSystem> file_system_of(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) {
    return errno_now().error("look at the file system of " + quote(path));
  }
  auto flags = static_cast<uint64_t>(info.f_flags);
  return FileSystem{
      .type = static_cast<int64_t>(info.f_type) & 0xffffffff,
      .free_bytes = static_cast<uint64_t>(info.f_bavail) * static_cast<uint64_t>(info.f_bsize),
      .total_inodes = info.f_files,
      .free_inodes = info.f_ffree,
      .read_only = (flags & ST_RDONLY) != 0,
      .no_exec = (flags & ST_NOEXEC) != 0,
      .no_suid = (flags & ST_NOSUID) != 0,
      .no_dev = (flags & ST_NODEV) != 0};
}

std::string file_system_name(int64_t type) {
  for (const Name& known : kNames) {
    if (known.type == type) return std::string(known.name);
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "type 0x%llx", static_cast<unsigned long long>(type));
  return text.data();
}

Result<void> check_access(const Fd& dir, const std::string& path, int mode) {
  if (::faccessat(dir.get(), path.c_str(), mode, AT_EACCESS) != 0) {
    return errno_now().error("use " + quote(path));
  }
  return {};
}

bool is_denied_by_cgroup(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0 && errno == EPERM;
}

}  // namespace berth::sys
