// SPDX-License-Identifier: Apache-2.0
// Resolution of a path inside a root directory: openat2(2), and a component walk that gives the
// same answers where the kernel or a seccomp filter does not offer it.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file.hpp"

namespace berth::sys {
namespace {

constexpr int kMaxLinks = 40;     // as the kernel: MAXSYMLINKS
constexpr int kMaxRestarts = 64;  // EAGAIN: a rename raced with "..", try again

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

// COMPAT(5.6): delete when that is our baseline. Every component is opened with O_NOFOLLOW from a
// handle of its parent; ".." pops a handle, so it can never climb above the root.
Result<Fd> walk_in_root(const Fd& root, const std::string& path, int flags, mode_t mode) {
  std::vector<Fd> parents;
  parents.push_back(TRY(open_at(root, ".", O_PATH | O_DIRECTORY)));
  std::vector<std::string> pending;
  auto push_components = [&](std::string_view text) {
    auto parts = split(text, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (!part->empty() && *part != ".") pending.emplace_back(*part);
    }
  };
  push_components(path);
  int links = 0;
  while (!pending.empty()) {
    std::string name = std::move(pending.back());
    pending.pop_back();
    if (name == "..") {
      if (parents.size() > 1) parents.pop_back();
      continue;
    }
    bool last = pending.empty();
    bool follow = !last || (flags & O_NOFOLLOW) == 0;
    auto entry = TRY(stat_entry(parents.back(), name));
    if (entry && S_ISLNK(entry->st_mode) && follow && !(last && (flags & O_EXCL))) {
      if (++links > kMaxLinks) return sys_error(ELOOP, "open " + quoted(path));
      std::string target = TRY(read_link(parents.back(), name));
      if (target.starts_with('/')) parents.resize(1);
      push_components(target);
      continue;
    }
    if (last) {
      return open_at(parents.back(), name, flags | O_NOFOLLOW, mode);
    }
    parents.push_back(TRY(open_at(parents.back(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW)));
  }
  return open_at(parents.back(), ".", flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
}

}  // namespace

Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags, mode_t mode) {
  int fd = openat2_in_root(root, path, flags, mode);
  if (fd >= 0) return Fd(fd);
  int saved = errno;
  if (saved == ENOSYS || (saved == EPERM && (flags & O_CREAT) == 0)) {
    // EPERM also comes from seccomp filters that know no openat2; the walk tells the true reason.
    return walk_in_root(root, path, flags, mode);
  }
  return sys_error(saved, ((flags & O_CREAT) ? "create " : "open ") + quoted(path));
}

}  // namespace berth::sys
