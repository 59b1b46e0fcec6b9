// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/mount.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/user/namespace.hpp"

namespace berth::sys {
namespace {

// glibc has these calls only since 2.36, and <linux/mount.h> clashes with <sys/mount.h>. So they
// are called by number.
constexpr unsigned kFsconfigSetFlag = 0;
constexpr unsigned kFsconfigSetString = 1;
constexpr unsigned kFsconfigCreate = 6;
constexpr unsigned kMoveMountFromEmptyPath = 0x4;
constexpr unsigned kMoveMountToEmptyPath = 0x40;
constexpr unsigned kRecursive = 0x8000;  // AT_RECURSIVE
constexpr uint64_t kMountIdMap = 0x00100000;

struct MountAttributes {
  uint64_t set;
  uint64_t clear;
  uint64_t propagation;
  uint64_t userns_fd;
};

// The last message that the kernel left in the context, without its level: "e overlay: bad option".
std::string kernel_message(const Fd& context) {
  std::array<char, 512> buffer;
  ssize_t count = ::read(context.get(), buffer.data(), buffer.size());
  if (count <= 0) return "";
  std::string_view message = trim(std::string_view(buffer.data(), static_cast<size_t>(count)));
  for (std::string_view level : {"e ", "w ", "i "}) {
    if (!message.starts_with(level)) continue;
    message.remove_prefix(level.size());
    break;
  }
  return " (" + escape_controls(message) + ")";
}

Result<void> mount_procfs() {
  Fd context = TRY(fsopen("proc"));
  TRY(fsconfig_create(context));
  TRY(fsmount(context, 0));
  return {};
}

}  // namespace

Result<Fd> fsopen(const std::string& type) {
  int fd = static_cast<int>(::syscall(SYS_fsopen, type.c_str(), 1U /* FSOPEN_CLOEXEC */));
  if (fd < 0) return errno_now().error("open file system type " + quote(type));
  return Fd(fd);
}

Result<void> fsconfig_string(const Fd& context, const std::string& key, const std::string& value) {
  if (::syscall(SYS_fsconfig, context.get(), kFsconfigSetString, key.c_str(), value.c_str(), 0) !=
      0) {
    int saved = errno;
    return sys_error(saved,
                     "set mount option " + quote(key + "=" + value) + kernel_message(context));
  }
  return {};
}

Result<void> fsconfig_flag(const Fd& context, const std::string& key) {
  if (::syscall(SYS_fsconfig, context.get(), kFsconfigSetFlag, key.c_str(), nullptr, 0) != 0) {
    int saved = errno;
    return sys_error(saved, "set mount option " + quote(key) + kernel_message(context));
  }
  return {};
}

Result<void> fsconfig_option(const Fd& context, const std::string& option) {
  size_t equals = option.find('=');
  if (equals == std::string::npos) return fsconfig_flag(context, option);
  return fsconfig_string(context, option.substr(0, equals), option.substr(equals + 1));
}

Result<void> fsconfig_create(const Fd& context) {
  if (::syscall(SYS_fsconfig, context.get(), kFsconfigCreate, nullptr, nullptr, 0) != 0) {
    int saved = errno;
    return sys_error(saved, "make file system" + kernel_message(context));
  }
  return {};
}

Result<Fd> fsmount(const Fd& context, unsigned attributes) {
  int fd =
      static_cast<int>(::syscall(SYS_fsmount, context.get(), 1U /* FSMOUNT_CLOEXEC */, attributes));
  if (fd < 0) return errno_now().error("mount file system");
  return Fd(fd);
}

Result<Fd> open_tree(const Fd& dir, const std::string& path, unsigned flags) {
  int fd = static_cast<int>(
      ::syscall(SYS_open_tree, dir.get(), path.c_str(), flags | static_cast<unsigned>(O_CLOEXEC)));
  if (fd < 0) return errno_now().error("open tree " + quote(path));
  return Fd(fd);
}

Result<void> move_mount_to_fd(const Fd& mount, const Fd& target, const std::string& name) {
  if (::syscall(SYS_move_mount, mount.get(), "", target.get(), "",
                kMoveMountFromEmptyPath | kMoveMountToEmptyPath) != 0) {
    return errno_now().error("mount at " + quote(name));
  }
  return {};
}

Result<void> mount_setattr(const Fd& mount, uint64_t set, uint64_t clear, uint64_t propagation,
                           Recursive recursive, const std::string& name) {
  MountAttributes attributes{set, clear, propagation, 0};
  unsigned flags = AT_EMPTY_PATH | (recursive == Recursive::yes ? kRecursive : 0U);
  if (::syscall(SYS_mount_setattr, mount.get(), "", flags, &attributes, sizeof attributes) != 0) {
    return errno_now().error("set mount attributes of " + quote(name));
  }
  return {};
}

Result<void> map_mount_ids(const Fd& mount, const Fd& user_namespace, Recursive recursive,
                           const std::string& name) {
  MountAttributes attributes{kMountIdMap, 0, 0, static_cast<uint64_t>(user_namespace.get())};
  unsigned flags = AT_EMPTY_PATH | (recursive == Recursive::yes ? kRecursive : 0U);
  if (::syscall(SYS_mount_setattr, mount.get(), "", flags, &attributes, sizeof attributes) != 0) {
    return errno_now().error("map the ids of " + quote(name));
  }
  return {};
}

Result<void> mount(const std::string& source, const std::string& target, const std::string& type,
                   unsigned long flags, const std::string& data) {
  auto or_null = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  if (::mount(or_null(source), target.c_str(), or_null(type), flags, or_null(data)) != 0) {
    return errno_now().error("mount " + quote(source.empty() ? type : source) + " at " +
                             quote(target));
  }
  return {};
}

Result<void> keep_mounts_here() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0) return {};
  if (errno != EINVAL) return errno_now().error("make mounts private");
  return make_error(Kind::unsupported,
                    "make a private mount tree: '/' is not a mount point, as in a chroot",
                    "mount --bind DIR DIR, before chroot DIR");
}

Result<void> leave_mount_namespace() {
  TRY(unshare(CLONE_NEWNS, "mounts"));
  return keep_mounts_here();
}

Result<uint64_t> mount_id(const Fd& place, const std::string& name) {
  struct statx status {};
  if (::statx(place.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0) {
    return errno_now().error("examine " + quote(name));
  }
  if ((status.stx_mask & STATX_MNT_ID) != 0) return status.stx_mnt_id;
  // COMPAT(5.8): delete when that is our baseline. The file has the same number in a line of text.
  std::string path = "/proc/self/fdinfo/" + std::to_string(place.get());
  std::string text = TRY(read_file(cwd(), path, 4096));
  constexpr std::string_view kName = "mnt_id:";
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(kName)) continue;
    if (auto id = parse_u64(trim(line.substr(kName.size())))) return *id;
  }
  return make_error(Kind::unsupported, "find the mount of " + quote(name));
}

Result<void> unmount(const std::string& target, int flags) {
  if (::umount2(target.c_str(), flags) != 0) return errno_now().error("unmount " + quote(target));
  return {};
}

Result<void> detach(const std::string& target) {
  return unmount(target, MNT_DETACH);
}

Result<void> try_procfs() {
  Cloned child = TRY(clone3(CLONE_NEWPID | CLONE_NEWNS, -1));
  if (child.pid == 0) {
    auto mounted = mount_procfs();
    ::_exit(mounted.ok() ? 0 : mounted.error().sys_errno);
  }
  Process process(child.pid, std::move(child.pidfd));
  ExitStatus status = TRY(process.wait());
  if (status.shell_code() == 0) return {};
  return sys_error(status.shell_code(), "mount a procfs");
}

}  // namespace berth::sys
