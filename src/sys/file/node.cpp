// SPDX-License-Identifier: Apache-2.0
#include "sys/file/node.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {

Result<void> make_node(const Fd& dir, const std::string& name, mode_t mode, unsigned major_number,
                       unsigned minor_number) {
  if (::mknodat(dir.get(), name.c_str(), mode, makedev(major_number, minor_number)) != 0) {
    return errno_now().error("make device " + quote(name));
  }
  return {};
}

Result<void> make_new_directory(const Fd& dir, const std::string& name, mode_t mode) {
  if (::mkdirat(dir.get(), name.c_str(), mode) != 0) {
    return errno_now().error("create directory " + quote(name));
  }
  return {};
}

Result<bool> is_device(const Fd& fd, const std::string& type, unsigned major_number,
                       unsigned minor_number, const std::string& name) {
  struct stat info = TRY(stat_fd(fd, name));
  mode_t wanted = type == "b" ? S_IFBLK : type == "p" ? S_IFIFO : S_IFCHR;
  if ((info.st_mode & S_IFMT) != wanted) return false;
  return wanted == S_IFIFO || info.st_rdev == makedev(major_number, minor_number);
}

}  // namespace berth::sys
