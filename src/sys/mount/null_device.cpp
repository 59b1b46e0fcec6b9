// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/null_device.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/mount/mount.hpp"
#include "sys/process/console.hpp"

namespace berth::sys {
namespace {

constexpr unsigned kNull = 3;

/// Opens a memory device of our own: a new node in a private tmpfs.
Result<Fd> open_own(unsigned minor, int flags) {
  Fd context = TRY(fsopen("tmpfs"));
  TRY(fsconfig_create(context));
  Fd place = TRY(fsmount(context, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  TRY(make_node(place, "device", S_IFCHR | 0600, 1, minor));
  Fd node = TRY(hold_entry(place, "device"));
  TRY(change_mode(node, 0666, "a standard stream"));
  return open_at(place, "device", flags);
}

Result<Fd> open_read_only(const Fd& stream, int flags) {
  Fd view = TRY(open_tree(stream, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
  constexpr uint64_t kHarmless = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  TRY(mount_setattr(view, kHarmless, 0, 0, Recursive::no, "a standard stream"));
  return open_at(cwd(), fd_path(view), flags);
}

Result<Fd> open_anew(const Fd& stream, const Fd& own, unsigned minor, int flags) {
  if (own && minor == kNull) {
    auto opened = open_at(cwd(), fd_path(own), flags);
    if (opened.ok()) return opened;
  }
  auto made = open_own(minor, flags);
  // A process without CAP_MKNOD may still clone a mount of its own mount namespace.
  return made.ok() ? std::move(made) : open_read_only(stream, flags);
}

/// The number of a device that everybody may open and that keeps no state of its users: null, zero,
/// full, random, urandom.
std::optional<unsigned> memory_device(const Fd& fd) {
  for (unsigned minor : {kNull, 5U, 7U, 8U, 9U}) {
    auto same = is_device(fd, "c", 1, minor, "a standard stream");
    if (same.ok() && *same) return minor;
  }
  return std::nullopt;
}

void exchange(int number, const Fd& own) {
  Fd stream(number);
  int flags = ::fcntl(number, F_GETFL);
  auto minor = memory_device(stream);
  if (flags >= 0 && (flags & O_PATH) == 0 && minor) {
    constexpr int kKept = O_APPEND | O_NONBLOCK;
    int access = *minor == kNull ? O_RDWR : flags & O_ACCMODE;
    auto opened = open_anew(stream, own, *minor, (flags & kKept) | access | O_NOCTTY);
    if (opened.ok()) ::dup2(opened->get(), number);
  }
  stream.release();
}

/// Opens the null device for each closed standard stream, as Go's runtime does for docker and
/// podman: otherwise the next opened file would become a standard stream, and output for the user
/// would go into it.
/// Errors: io (no /dev/null). open(2)
Result<void> open_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    // Gets the lowest free number. Stays open, without O_CLOEXEC, for the programs that we start.
    int opened = ::open("/dev/null", O_RDWR | O_NOCTTY);
    if (opened < 0) return errno_now().error("open '/dev/null' as a standard stream");
  }
  return {};
}

}  // namespace

bool has_standard_streams(std::string_view program) {
  auto opened = open_standard_streams();
  if (opened.ok()) return true;
  ignore(write_stream(STDERR_FILENO, std::string(program) + ": " + to_line(opened.error()) + "\n"));
  return false;
}

Fd find_null_device(const Fd& root) {
  auto found = open_in_root(root, "/dev/null", O_PATH | O_NOFOLLOW);
  return found.ok() && memory_device(*found) == kNull ? std::move(*found) : Fd();
}

void exchange_null_streams(const Fd& own) {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (is_inherited(number)) exchange(number, own);
  }
}

}  // namespace berth::sys
