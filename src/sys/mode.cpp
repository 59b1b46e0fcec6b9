// SPDX-License-Identifier: Apache-2.0
#include "sys/mode.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {
namespace {

Error owner_error(SavedErrno saved, const std::string& name, uid_t uid, gid_t gid) {
  std::string owner = std::to_string(uid);
  if (gid != kSameGroup) owner += ":" + std::to_string(gid);
  return saved.error("change the owner of " + quote(name) + " to " + owner);
}

}  // namespace

Result<void> change_mode(const Fd& fd, mode_t mode, const std::string& name) {
  if (::fchmod(fd.get(), mode) == 0) return {};
  return errno_now().error("change the mode of " + quote(name));
}

Result<void> change_mode_at(const Fd& dir, const std::string& name, mode_t mode) {
  if (::fchmodat(dir.get(), name.c_str(), mode, 0) == 0) return {};
  return errno_now().error("change the mode of " + quote(name));
}

Result<void> change_owner(const Fd& fd, uid_t uid, gid_t gid, const std::string& name) {
  if (::fchownat(fd.get(), "", uid, gid, AT_EMPTY_PATH) == 0) return {};  // O_PATH too
  return owner_error(errno_now(), name, uid, gid);
}

Result<void> change_owner_at(const Fd& dir, const std::string& name, uid_t uid, gid_t gid) {
  if (::fchownat(dir.get(), name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) == 0) return {};
  return owner_error(errno_now(), name, uid, gid);
}

}  // namespace berth::sys
