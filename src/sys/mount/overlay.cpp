// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/overlay.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/mount/fuse.hpp"
#include "sys/mount/mount.hpp"
#include "sys/process/process.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/namespace.hpp"

namespace berth::sys {
namespace {

using Lower = std::vector<const Layer*>;

/// More layers are split into an overlay on an overlay, which the kernel allows
/// (FILESYSTEM_MAX_STACK_DEPTH). The kernel's limit for one overlay is 500 (OVL_MAX_STACK).
constexpr size_t kMostAtOnce = 400;

/// Makes a detached overlay.
Result<Fd> make_overlay(const Lower& lower, const OverlayTop& top) {
  Fd context = TRY(fsopen("overlay"));
  TRY(fsconfig_string(context, "source", top.source));
  for (const Layer* layer : lower) {
    TRY(fsconfig_string(context, "lowerdir+", fd_path(layer->root)));
  }
  if (top.upper) {
    TRY(fsconfig_string(context, "upperdir", fd_path(top.upper)));
    TRY(fsconfig_string(context, "workdir", fd_path(top.work)));
  }
  for (const std::string& option : top.options) TRY(fsconfig_option(context, option));
  TRY(fsconfig_create(context));
  return fsmount(context, static_cast<unsigned>(top.attributes));
}

// COMPAT(6.5): delete when that is our baseline. One string for all layers, at most a page long, so
// the layers are named by descriptor numbers, relative to /proc/self/fd.
Result<void> mount_by_string(const Lower& lower, const OverlayTop& top, const Fd& target) {
  auto name = [](const Fd& fd) { return std::to_string(fd.get()); };
  std::string data = "lowerdir=";
  for (size_t i = 0; i < lower.size(); ++i) {
    if (i > 0) data += ':';
    data += name(lower[i]->root);
  }
  if (top.upper) data += ",upperdir=" + name(top.upper) + ",workdir=" + name(top.work);
  for (const std::string& option : top.options) data += "," + option;
  Fd before = TRY(open_at(cwd(), ".", O_PATH | O_DIRECTORY));
  Fd descriptors = TRY(open_at(cwd(), "/proc/self/fd", O_PATH | O_DIRECTORY));
  TRY(change_directory(descriptors, "/proc/self/fd"));
  auto mounted = mount(top.source, fd_path(target), "overlay", top.flags, data);
  TRY(change_directory(before, "."));
  return mounted;
}

/// As make_overlay(), by mount_by_string(): mounts the overlay at `place` first, on top of the
/// mounts there.
Result<Fd> make_overlay_by_string(const Lower& lower, const OverlayTop& top, const Fd& place) {
  TRY(mount_by_string(lower, top, place));
  // Opened by path, because the older handle leads to the directory below the new mount.
  std::string path = TRY(read_link(cwd(), fd_path(place)));
  Fd mounted = TRY(open_at(cwd(), path, O_PATH | O_DIRECTORY));
  return open_tree(mounted, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
}

bool has_detached(const Lower& lower) {
  return std::ranges::any_of(lower, [](const Layer* layer) { return layer->detached; });
}

/// Mounts the layers at `place`, one on top of the other, until the overlay is made, which then has
/// private clones of the mounts.
Result<Fd> make_over_attached(const Lower& lower, const OverlayTop& top, const Fd& place) {
  std::string first;
  Result<Fd> made = make_error(Kind::bug, "no layer was attached");
  auto attach = [&]() -> Result<void> {
    for (const Layer* layer : lower) {
      if (!layer->detached) continue;
      TRY(move_mount_to_fd(layer->root, place, "a layer"));
      if (first.empty()) first = fd_path(layer->root);
    }
    return {};
  };
  auto attached = attach();
  if (attached.ok()) {
    made = make_overlay(lower, top);
    if (!made.ok()) made = make_overlay_by_string(lower, top, place);
  }
  // Detaching the first one detaches those on top of it.
  if (!first.empty()) TRY(unmount(first, MNT_DETACH));
  TRY(std::move(attached));
  return made;
}

Result<Fd> mount_made(Result<Fd> made, const Fd& place) {
  if (made.ok()) TRY(move_mount_to_fd(*made, place, "/"));
  return made;
}

Result<void> mount_trial(const Fd& place, bool user_attributes) {
  Fd context = TRY(fsopen("overlay"));
  std::string base = fd_path(place) + "/";
  TRY(fsconfig_string(context, "lowerdir", base + "lower"));
  TRY(fsconfig_string(context, "upperdir", base + "upper"));
  TRY(fsconfig_string(context, "workdir", base + "work"));
  if (user_attributes) TRY(fsconfig_flag(context, "userxattr"));
  TRY(fsconfig_create(context));
  TRY(fsmount(context, 0));
  return {};
}

Result<void> mount_trial_apart(const Fd& place, bool user_attributes) {
  TRY(unshare(CLONE_NEWNS, "mounts"));
  return mount_trial(place, user_attributes);
}

// Tries it in a child, in a mount namespace of its own, as users other than the machine's root
// must.
Result<void> try_in_child(const Fd& place, bool user_attributes) {
  Fd words = TRY(memory_file("words of a trial", ""));
  Cloned child = TRY(clone3(0, -1));
  if (child.pid == 0) {
    auto tried = mount_trial_apart(place, user_attributes);
    if (!tried.ok()) ignore(write_all(words, tried.error().what, "words"));
    ::_exit(tried.ok() ? 0 : std::clamp(tried.error().sys_errno, 1, 255));
  }
  Process process(child.pid, std::move(child.pidfd));
  ExitStatus status = TRY(process.wait());
  if (status.shell_code() == 0) return {};
  constexpr size_t kMaxWords = 1024;
  Error error = sys_error(status.code, "mount an overlay");
  std::string said = TRY(read_at(words, 0, kMaxWords, "words"));
  if (!said.empty()) error.what = said;
  return error;
}

constexpr uint64_t bit(int capability) {
  return uint64_t{1} << capability;
}

// The server changes files on behalf of the container, so it keeps the capabilities to write the
// files of other users and to change owners. These do not suffice to mount another file system or
// to affect a process.
constexpr uint64_t kOverFiles = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) |
                                bit(CAP_FOWNER) | bit(CAP_FSETID) | bit(CAP_MKNOD) |
                                bit(CAP_SETFCAP);

// Only with CAP_SYS_ADMIN the kernel shows "trusted.overlay.opaque", the mark in layers that root
// unpacked.
uint64_t kept_rights() {
  bool root = effective_uid() == 0 && in_initial_user_namespace();
  return root ? kOverFiles | bit(CAP_SYS_ADMIN) : kOverFiles;
}

FuseServer fuse_overlayfs() {
  FuseServer server;
  server.programs = {"/usr/bin/fuse-overlayfs", "/usr/local/bin/fuse-overlayfs"};
  server.package = "fuse-overlayfs";
  return server;
}

/// The path by which an option of the server names the handle `directory`; keeps the handle open in
/// the server.
std::string hand_over(const Fd& directory, FuseServer& server) {
  server.keep.push_back(directory.get());
  return fd_path(directory);
}

}  // namespace

Result<void> try_overlay(const Fd& place, bool user_attributes) {
  for (const char* name : {"lower", "upper", "work"}) TRY(make_directory(place, name, 0700));
  auto tried = mount_trial(place, user_attributes);
  if (tried.ok() || tried.error().kind != Kind::denied) return tried;
  return try_in_child(place, user_attributes);
}

namespace {

Result<Fd> mount_at_once(const Lower& lower, const OverlayTop& top, const std::string& target) {
  Fd place = TRY(open_at(cwd(), target, O_PATH | O_DIRECTORY));
  auto mounted = mount_made(make_overlay(lower, top), place);
  if (mounted.ok()) return mounted;
  // Older kernels refuse "lowerdir+", at once or only when the file system is made. Before 6.15
  // they refuse detached mounts as layers. Linux 6.18 refuses with EPERM detached mounts that were
  // made in an outer user namespace. When the other ways fail too, the first error is the true one.
  bool old_kernel = mounted.error().sys_errno == EINVAL || mounted.error().sys_errno == ENOSYS;
  bool from_above = mounted.error().sys_errno == EPERM && has_detached(lower);
  if (!old_kernel && !from_above) return mounted;
  // The failed attempt has marked the work directory as used by a "volatile" overlay, which works
  // only once.
  if (top.work) ignore(remove_tree(top.work, "work"));
  if (has_detached(lower)) {
    auto again = mount_made(make_over_attached(lower, top, place), place);
    return again.ok() ? std::move(again) : std::move(mounted);
  }
  if (!mount_by_string(lower, top, place).ok()) return mounted;
  std::string path = TRY(read_link(cwd(), fd_path(place)));
  return open_at(cwd(), path, O_PATH | O_DIRECTORY);
}

/// The top of a read-only overlay, with only those attributes that all kernels have.
OverlayTop read_only(const OverlayTop& top) {
  OverlayTop base;
  base.source = top.source;
  base.flags = MS_RDONLY;
  base.attributes = MOUNT_ATTR_RDONLY;
  bool is_users = std::ranges::find(top.options, "userxattr") != top.options.end();
  if (is_users) base.options.emplace_back("userxattr");
  return base;
}

}  // namespace

Result<Fd> mount_overlay(const std::vector<Layer>& lower, const OverlayTop& top,
                         const std::string& target) {
  Lower upper_part;
  for (const Layer& layer : lower) upper_part.push_back(&layer);
  if (upper_part.size() <= kMostAtOnce + 1) return mount_at_once(upper_part, top, target);
  // The lowest layers become one layer, an overlay of their own. Their whiteouts hide only content
  // of these layers.
  Lower lower_part(upper_part.begin() + kMostAtOnce, upper_part.end());
  upper_part.resize(kMostAtOnce);
  Fd mounted = TRY(mount_at_once(lower_part, read_only(top), target));
  Layer base{TRY(open_tree(mounted, "", OPEN_TREE_CLONE | AT_EMPTY_PATH)), true};
  std::string path = fd_path(mounted);
  TRY(unmount(path, MNT_DETACH));
  upper_part.push_back(&base);
  return mount_at_once(upper_part, top, target);
}

Result<void> check_fuse_overlay() {
  return check_fuse(fuse_overlayfs());
}

Result<Fd> mount_fuse_overlay(const std::vector<Layer>& lower, const OverlayTop& top) {
  FuseServer server = fuse_overlayfs();
  server.capabilities = kept_rights();
  std::string words = "lowerdir=";
  for (const Layer& layer : lower) {
    if (words.back() != '=') words += ':';
    words += hand_over(layer.root, server);
  }
  if (top.upper) {
    server.writable = true;
    words += ",upperdir=" + hand_over(top.upper, server);
    words += ",workdir=" + hand_over(top.work, server);
    auto& options = top.options;
    bool lost = std::ranges::find(options, "volatile") != options.end();
    if (lost) words += ",volatile";
  }
  server.options = {"-o", words};
  return mount_fuse(server);
}

}  // namespace berth::sys
