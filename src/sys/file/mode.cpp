// SPDX-License-Identifier: Apache-2.0
#include "sys/file/mode.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

Error owner_error(SavedErrno saved, const std::string& name, uid_t uid, gid_t gid) {
  std::string owner = std::to_string(uid);
  if (gid != kSameGroup) owner += ":" + std::to_string(gid);
  return saved.error("change the owner of " + quote(name) + " to " + owner);
}

timespec timespec_of(FileTime time) {
  return {time.seconds, static_cast<long>(time.nanoseconds)};
}

Result<void> set_both(const Fd& fd, timespec accessed, timespec modified, const std::string& name) {
  const timespec times[2] = {accessed, modified};
  if (::futimens(fd.get(), times) == 0) return {};
  if (errno == EBADF) {  // O_PATH
    if (::utimensat(fd.get(), "", times, AT_EMPTY_PATH) == 0) return {};
    // COMPAT(5.8): older kernels lack the flag; the path in /proc works as well, also for a link
    // itself.
    if (errno == EINVAL && ::utimensat(AT_FDCWD, fd_path(fd).c_str(), times, 0) == 0) return {};
  }
  return errno_now().error("set the time of " + quote(name));
}

}  // namespace

Result<Fd> hold_entry(const Fd& dir, const std::string& name) {
  return open_at(dir, name, O_PATH | O_NOFOLLOW);
}

Result<Fd> hold_made(const Fd& dir, const std::string& name, mode_t type, dev_t device) {
  Fd held = TRY(hold_entry(dir, name));
  struct stat info = TRY(stat_fd(held, name));
  bool is_node = type == S_IFCHR || type == S_IFBLK;
  bool is_it = (info.st_mode & S_IFMT) == type && (!is_node || info.st_rdev == device);
  if (is_it) return held;
  return make_error(Kind::busy,
                    "use " + quote(name) + ": there is another file at this path by now");
}

Result<void> change_mode(const Fd& fd, mode_t mode, const std::string& name) {
  if (::fchmod(fd.get(), mode) == 0) return {};
  // COMPAT(6.6): fchmodat2(2) takes an O_PATH handle; older kernels need the path in /proc.
  if (errno == EBADF && ::fchmodat(AT_FDCWD, fd_path(fd).c_str(), mode, 0) == 0) return {};
  return errno_now().error("change the mode of " + quote(name));
}

Result<void> change_owner(const Fd& fd, uid_t uid, gid_t gid, const std::string& name) {
  if (::fchownat(fd.get(), "", uid, gid, AT_EMPTY_PATH) == 0) return {};  // O_PATH, too
  return owner_error(errno_now(), name, uid, gid);
}

Result<void> set_modified(const Fd& fd, FileTime time, const std::string& name) {
  return set_both(fd, {0, UTIME_OMIT}, timespec_of(time), name);
}

Result<void> set_times(const Fd& fd, FileTime accessed, FileTime modified,
                       const std::string& name) {
  return set_both(fd, timespec_of(accessed), timespec_of(modified), name);
}

mode_t set_umask(mode_t mask) {
  return ::umask(mask);
}

}  // namespace berth::sys
