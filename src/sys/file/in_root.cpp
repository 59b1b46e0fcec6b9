// SPDX-License-Identifier: Apache-2.0
// Resolution of a path inside a root directory: by openat2(2), or, where the kernel or a seccomp
// filter refuses that, by a walk over the components with the same results.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/root_walk.hpp"

namespace berth::sys {
namespace {

constexpr int kMaxRestarts = 64;  // how often to retry after EAGAIN: a rename raced with ".."

int openat2_in_root(const Fd& root, const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) ? mode : 0;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  int fd = -1;
  for (int attempt = 0; attempt < kMaxRestarts; ++attempt) {
    fd = static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return fd;
}

// COMPAT(5.6): delete when that is our baseline. Every component is opened with O_NOFOLLOW.
Result<Fd> walk_in_root(const Fd& root, const std::string& path, int flags, mode_t mode) {
  RootWalk walk = TRY(RootWalk::begin(root, path));
  while (auto name = walk.next()) {
    bool last = walk.is_last();
    bool follow = !last || (flags & O_NOFOLLOW) == 0;
    auto entry = TRY(stat_entry(walk.directory(), *name));
    if (entry && S_ISLNK(entry->st_mode) && follow && !(last && (flags & O_EXCL))) {
      TRY(walk.follow(*name));
      continue;
    }
    if (last) return open_at(walk.directory(), *name, flags | O_NOFOLLOW, mode);
    Fd directory = TRY(open_at(walk.directory(), *name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    walk.enter(std::move(directory));
  }
  return open_at(walk.directory(), ".", flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
}

}  // namespace

Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags, mode_t mode) {
  int fd = openat2_in_root(root, path, flags, mode);
  if (fd >= 0) return Fd(fd);
  int saved = errno;
  if (saved == ENOSYS || (saved == EPERM && (flags & O_CREAT) == 0)) {
    // EPERM may also come from a seccomp filter that refuses openat2. The walk finds the true
    // reason.
    return walk_in_root(root, path, flags, mode);
  }
  return sys_error(saved, ((flags & O_CREAT) ? "create " : "open ") + quote(path));
}

}  // namespace berth::sys
