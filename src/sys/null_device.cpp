// SPDX-License-Identifier: Apache-2.0
#include "sys/null_device.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/error.hpp"
#include "sys/console.hpp"
#include "sys/file.hpp"
#include "sys/mode.hpp"
#include "sys/mount.hpp"
#include "sys/node.hpp"

namespace berth::sys {
namespace {

/// A null device that is nobody else's: a node of a file system that nobody else can see.
Result<Fd> open_own(int flags) {
  Fd context = TRY(fsopen("tmpfs"));
  TRY(fsconfig_create(context));
  Fd place = TRY(fsmount(context, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  TRY(make_node(place, "null", S_IFCHR | 0600, 1, 3));
  Fd node = TRY(hold_entry(place, "null"));
  TRY(change_mode(node, 0666, "/dev/null"));
  return open_at(place, "null", flags);
}

Result<Fd> open_read_only(const Fd& stream, int flags) {
  Fd view = TRY(open_tree(stream, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
  constexpr uint64_t kHarmless = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  TRY(mount_setattr(view, kHarmless, 0, 0, Recursive::no, "/dev/null"));
  return open_at(cwd(), fd_path(view), flags);
}

Result<Fd> open_anew(const Fd& stream, const Fd& own, int flags) {
  if (own) {
    auto opened = open_at(cwd(), fd_path(own), flags);
    if (opened.ok()) return opened;
  }
  auto made = open_own(flags);
  // A process without CAP_MKNOD may still clone a mount of its own mount namespace.
  return made.ok() ? std::move(made) : open_read_only(stream, flags);
}

bool is_null_device(const Fd& fd) {
  auto null = is_device(fd, "c", 1, 3, "/dev/null");
  return null.ok() && *null;
}

void exchange(int number, const Fd& own) {
  Fd stream(number);
  int flags = ::fcntl(number, F_GETFL);
  if (flags >= 0 && (flags & O_PATH) == 0 && is_null_device(stream)) {
    constexpr int kKept = O_APPEND | O_NONBLOCK;
    auto opened = open_anew(stream, own, (flags & kKept) | O_RDWR | O_NOCTTY);
    if (opened.ok()) ::dup2(opened->get(), number);
  }
  stream.release();
}

}  // namespace

Result<void> open_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    // The lowest free number, and left open for the programs that we start.
    int opened = ::open("/dev/null", O_RDWR | O_NOCTTY);
    if (opened < 0) return errno_now().error("open '/dev/null' as a standard stream");
  }
  return {};
}

bool has_standard_streams(std::string_view program) {
  auto opened = open_standard_streams();
  if (opened.ok()) return true;
  ignore(write_stream(STDERR_FILENO, std::string(program) + ": " + to_line(opened.error()) + "\n"));
  return false;
}

Fd find_null_device(const Fd& root) {
  auto found = open_in_root(root, "/dev/null", O_PATH | O_NOFOLLOW);
  return found.ok() && is_null_device(*found) ? std::move(*found) : Fd();
}

void exchange_null_streams(const Fd& own) {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (is_inherited(number)) exchange(number, own);
  }
}

}  // namespace berth::sys
