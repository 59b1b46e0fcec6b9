// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/mounts.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "runtime/child/early_mounts.hpp"
#include "runtime/mount/attach.hpp"
#include "runtime/mount/target.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/mount/copy_tree.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/overlay.hpp"
#include "sys/mount/table.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

constexpr uint64_t kHarmless =
    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

std::string cannot_mount_on(const std::string& what, const std::string& target) {
  return "cannot mount " + quote(what) + " at " + quote(target);
}

}  // namespace

Result<void> refuse_kernel_target(const sys::Fd& target, const std::string& path) {
  if (path.starts_with("/proc/")) return {};  // plan::make() has checked these paths
  long type = TRY(sys::file_system_type(target, path));
  if (path.starts_with("/sys/") && type != PROC_SUPER_MAGIC) return {};
  constexpr long kKernels[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,   CGROUP_SUPER_MAGIC,
                               CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
                               SECURITYFS_MAGIC,    BPF_FS_MAGIC};
  if (std::ranges::find(kKernels, type) == std::end(kKernels)) return {};
  return make_error(Kind::denied, quote(path) + " leads into the kernel's file systems");
}

namespace {

// Returns no handle of the mount, because none is needed and a container has a dozen of these
// mounts.
Result<void> bind_over(const sys::Fd& source, const sys::Fd& target, const std::string& path) {
  NewMount view = TRY(make_view(source, false, path));
  if (view.detached) {
    auto moved = sys::move_mount_to_fd(view.detached, target, path);
    if (moved.ok() || moved.error().sys_errno != ENOSYS) return moved;
  }
  // COMPAT(5.2): delete when that is our baseline.
  return sys::mount(sys::fd_path(source), sys::fd_path(target), "", MS_BIND, "");
}

Result<void> mask_file(Inside& inside, const sys::Fd& target, const std::string& path) {
  if (inside.null_device) return bind_over(inside.null_device, target, path);
  sys::Fd host = TRY(sys::open_at(sys::cwd(), "/dev/null", O_PATH | O_NOFOLLOW));
  if (!TRY(sys::is_device(host, "c", 1, 3, "/dev/null"))) {
    return make_error(Kind::denied, "'/dev/null' of the host is not the null device");
  }
  // Root in the container owns the host's inode. A read-only mount still allows reads and writes of
  // the device, but keeps mode, owner and times of the inode unchanged. The mounts that mask files
  // are views of this mount.
  plan::MountAttributes attributes;
  attributes.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  NewMount view = TRY(make_view(host, false, path));
  inside.null_device = TRY(attach(std::move(view), target, attributes, path));
  return {};
}

Result<void> mask_directory(Inside& inside, const sys::Fd& target, const std::string& path) {
  if (inside.empty_tree) return bind_over(inside.empty_tree, target, path);
  // One tmpfs for all directories, because each tmpfs costs a superblock at the start and at the
  // end.
  NewMount empty =
      TRY(make_file_system("tmpfs", "tmpfs", {"size=4k", "nr_inodes=2", "mode=755"}, kHarmless));
  plan::MountAttributes harmless;
  harmless.set = kHarmless;
  inside.empty_tree = TRY(attach(std::move(empty), target, harmless, path));
  return {};
}

void remember_view(Inside& inside, const std::string& path, sys::Fd mount) {
  if (path == "/proc" || path == "/sys") inside.kernel_views.emplace_back(path, std::move(mount));
}

// Opens paths below /proc and /sys through the handle of the mount there, because a process that
// can write to the image may have replaced the directory since (CVE-2019-19921, CVE-2023-28642). A
// missing path is not restricted.
Result<sys::Fd> open_restricted(const Inside& inside, const std::string& path) {
  const auto& views = inside.kernel_views;
  for (auto view = views.rbegin(); view != views.rend(); ++view) {
    if (!path.starts_with(view->first + "/")) continue;
    return sys::open_in_root(view->second, path.substr(view->first.size()), O_PATH | O_NOFOLLOW);
  }
  return sys::open_in_root(inside.root, path, O_PATH | O_NOFOLLOW);
}

Result<void> mask(Inside& inside, const std::string& path) {
  auto target = open_restricted(inside, path);
  if (!target.ok() &&
      (target.error().kind == Kind::not_found || target.error().sys_errno == ENOTDIR)) {
    return {};  // nothing to hide on this kernel
  }
  if (!target.ok()) return std::move(target).error();
  struct stat info = TRY(sys::stat_fd(*target, path));
  return S_ISDIR(info.st_mode) ? mask_directory(inside, *target, path)
                               : mask_file(inside, *target, path);
}

plan::MountAttributes read_only() {
  plan::MountAttributes attributes;
  attributes.set = MOUNT_ATTR_RDONLY;
  return attributes;
}

// The next of the mounts that the parent has made, in the order of the plan; empty: the parent
// could not make it detached.
Result<sys::Fd> take_early_mount(Inside& inside) {
  const sys::Fd& made = inside.prepared.early_mounts[inside.early_taken++];
  return made ? sys::duplicate(made) : Result<sys::Fd>(sys::Fd());
}

Result<NewMount> make_or_take(Inside& inside, const plan::MountFilesystem& step,
                              const std::vector<std::string>& data, uint64_t attributes) {
  NewMount mount;
  if (is_early(step)) mount.detached = TRY(take_early_mount(inside));
  if (mount.detached) return mount;
  return make_file_system(step.type, step.source, data, attributes);
}

// The kernel refuses a new procfs in a user namespace if mounts cover a part of the existing
// procfs: the new one would show that part (mount_too_revealing() in fs/namespace.c).
Error explain_covered(Error error, const std::string& type) {
  if (error.sys_errno != EPERM || type != "proc") return error;
  return std::move(error).with_hint(
      "findmnt -R /proc, which shows what is mounted over a part of it here; berth run --pid host "
      "needs no new one");
}

bool says(const std::vector<std::string>& data, std::string_view key) {
  return std::ranges::any_of(data,
                             [&](const std::string& option) { return option.starts_with(key); });
}

// A tmpfs gets the mode of the directory that it hides unless the options have a mode, as under
// runc: the kernel's default, world-writable, suits only /tmp.
void keep_mode(const sys::Fd& root, const std::string& target, std::vector<std::string>& data) {
  if (says(data, "mode=")) return;
  auto there = sys::open_in_root(root, target, O_PATH | O_DIRECTORY);
  if (!there.ok()) return;
  auto info = sys::stat_fd(*there, target);
  if (info.ok()) data.push_back("mode=" + octal(info->st_mode & 07777));
}

Result<void> copy_up(const sys::Fd& from, const sys::Fd& to, const plan::MountFilesystem& step) {
  TRY(sys::copy_tree(from, to, step.target));
  if (says(step.data, "uid=") || says(step.data, "gid=")) return {};
  struct stat info = TRY(sys::stat_fd(from, step.target));
  ignore(sys::change_owner(to, info.st_uid, info.st_gid, step.target));  // as far as permitted
  return {};
}

Result<NewMount> make_view_of_link(const std::string& path, bool recursive) {
  sys::Fd source = TRY(sys::open_at(sys::cwd(), path, O_PATH | O_NOFOLLOW));
  return make_view(source, recursive, path);
}

// A view of the source, opened by path here, because such a view keeps the flags that the host has
// locked. The view that the parent holds is used only if we may not search a directory of the path.
Result<NewMount> view_of_source(Inside& inside, const plan::MountBind& step) {
  NewMount view;
  if (is_early(step)) {
    view.detached = TRY(take_early_mount(inside));
    return view;
  }
  const auto& held = inside.prepared.held_sources;
  const sys::Fd* parents = held ? &held->binds[inside.binds_taken++] : nullptr;
  auto opened = step.links.source ? make_view_of_link(step.source, step.recursive)
                                  : make_view_of(step.source, step.recursive);
  if (opened.ok() || opened.error().kind != Kind::denied) return opened;
  if (parents == nullptr || !*parents) return opened;
  view.detached = TRY(sys::duplicate(*parents));
  return view;
}

// Makes a missing target with the type of the source.
Result<sys::Fd> open_bind_target(const sys::Fd& root, const NewMount& view,
                                 const plan::MountBind& step) {
  auto found = sys::open_in_root(root, step.target, O_PATH | (step.links.target ? O_NOFOLLOW : 0));
  if (found.ok() || found.error().kind != Kind::not_found) return found;
  sys::Fd source;
  int flags = O_PATH | (step.links.source ? O_NOFOLLOW : 0);
  if (!view.detached) source = TRY(sys::open_at(sys::cwd(), step.source, flags));
  struct stat info = TRY(sys::stat_fd(source ? source : view.detached, step.source));
  return open_target(root, step.target,
                     S_ISDIR(info.st_mode) ? TargetType::directory : TargetType::file);
}

/// Copies the source, which is a symbolic link. An existing link is accepted.
Result<void> copy_link(const Inside& inside, const plan::MountBind& step, const std::string& text) {
  Parents parents;
  Parents::Place parent = TRY(parents.open(inside.root, inside.own_dev, step.target));
  if (!parent.is_own) return lies_in_another_mount(step.target);
  auto made = sys::make_symlink(text, parent.directory, parent.name);
  if (made.ok() || made.error().kind != Kind::exists) return made;
  auto there = sys::read_link(parent.directory, parent.name);
  return there.ok() && *there == text ? Result<void>() : std::move(made);
}

Result<void> bind_cgroup(const std::string& directory, const sys::Fd& target,
                         const plan::MountCgroups& step) {
  sys::Fd source = TRY(sys::open_at(sys::cwd(), directory, O_PATH | O_DIRECTORY));
  NewMount view = TRY(make_view(source, false, directory));
  TRY(attach(std::move(view), target, step.attributes, step.target));
  return {};
}

}  // namespace

Result<void> isolate_mounts() {
  return sys::keep_mounts_here();
}

Result<void> mount_overlay_root(Inside& inside, const plan::MountOverlayRoot& step) {
  const char* context = "cannot mount the root file system";
  if (step.served) {
    sys::Fd target = TRY_CTX(sys::open_at(sys::cwd(), step.target, O_PATH | O_DIRECTORY), context);
    NewMount made;
    made.detached = TRY_CTX(sys::duplicate(inside.prepared.served_root), context);
    inside.root = TRY_CTX(attach(std::move(made), target, step.attributes, "/"), context);
    return {};
  }
  sys::OverlayTop top = TRY_CTX(open_top(step), context);
  std::vector<sys::Layer> lower = TRY_CTX(open_lower(inside.prepared.images, step.lower), context);
  inside.root = TRY_CTX(sys::mount_overlay(lower, top, step.target), context);
  return {};
}

Result<void> mount_layers(Inside& inside, const plan::MountLayers& step) {
  const std::string context = cannot_mount_on("image", step.target);
  const LayerImages& images = inside.prepared.data_images[inside.data_taken++];
  std::vector<sys::Layer> lower = TRY_CTX(open_lower(images, step.lower), context);
  sys::Fd target = TRY_CTX(open_target(inside.root, step.target, TargetType::directory), context);
  TRY_CTX(refuse_kernel_target(target, step.target), context);
  if (lower.size() > 1) {
    sys::OverlayTop top;
    top.options = step.options;
    top.attributes = step.attributes.set;
    top.flags = mount_flags(step.attributes.set);
    TRY_CTX(sys::mount_overlay(lower, top, sys::fd_path(target)), context);
    return {};
  }
  NewMount view;
  if (lower[0].detached) {
    view.detached = std::move(lower[0].root);
  } else {
    view = TRY_CTX(make_view(lower[0].root, false, step.target), context);
  }
  TRY_CTX(attach(std::move(view), target, step.attributes, step.target), context);
  return {};
}

Result<void> bind_root(Inside& inside, const plan::BindRoot& step) {
  const char* context = "cannot mount the root file system";
  auto opened = sys::open_at(sys::cwd(), step.path, O_PATH | O_DIRECTORY);
  const auto& held = inside.prepared.held_sources;
  if (!opened.ok() && opened.error().kind == Kind::denied && held && held->root) {
    // Any directory will do, because the process leaves it at once.
    sys::Fd place = TRY_CTX(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY), context);
    NewMount view;
    view.detached = TRY_CTX(sys::duplicate(held->root), context);
    inside.root = TRY_CTX(attach(std::move(view), place, {}, "/"), context);
    return {};
  }
  sys::Fd target = TRY_CTX(std::move(opened), context);
  NewMount view = TRY(make_view(target, true, step.path));
  inside.root = TRY(attach(std::move(view), target, {}, "/"));
  return {};
}

Result<void> mount_file_system(Inside& inside, const plan::MountFilesystem& step) {
  std::string context = cannot_mount_on(step.type, step.target);
  std::vector<std::string> data = step.data;
  if (step.type == "tmpfs") keep_mode(inside.root, step.target, data);
  sys::Fd target =
      TRY_CTX(step.exact ? open_exact_target(inside.root, step.target)
                         : open_target(inside.root, step.target, TargetType::directory),
              context);
  if (!step.exact) TRY_CTX(refuse_kernel_target(target, step.target), context);
  plan::MountAttributes attributes = step.attributes;
  if (step.copy_up) attributes.set &= ~uint64_t{MOUNT_ATTR_RDONLY};
  auto made = make_or_take(inside, step, data, attributes.set);
  if (!made.ok()) {
    return explain_covered(std::move(made).error(), step.type).with_context(std::move(context));
  }
  NewMount mount = std::move(made).value();
  uint64_t filled = 0;
  if (step.copy_up && mount.detached) {
    TRY_CTX(copy_up(target, mount.detached, step), context);
    filled = TRY(sys::mount_id(mount.detached, step.target));
  }
  sys::Fd attached = TRY_CTX(attach(std::move(mount), target, attributes, step.target), context);
  // An old kernel has mounted the file system directly on the target.
  if (step.copy_up && TRY(sys::mount_id(attached, step.target)) != filled) {
    TRY_CTX(copy_up(target, attached, step), context);
  }
  if (attributes.set != step.attributes.set) {
    TRY_CTX(set_attributes(attached, read_only(), step.target), context);
  }
  // A devtmpfs belongs to the machine, wherever it is mounted.
  if (step.target == "/dev") inside.own_dev.reset();
  if (step.target == "/dev" && step.type == "tmpfs") {
    inside.own_dev = TRY(sys::duplicate(attached));
  }
  remember_view(inside, step.target, std::move(attached));
  return {};
}

Result<void> mount_bind(Inside& inside, const plan::MountBind& step) {
  auto context = [&] { return cannot_mount_on(step.source, step.target); };
  if (step.links.copy) {
    auto text = sys::read_link(sys::cwd(), step.source);
    if (text.ok()) {
      if (inside.prepared.held_sources) ++inside.binds_taken;
      TRY_CTX(copy_link(inside, step, *text), context());
      return {};
    }
  }
  NewMount view = TRY_CTX(view_of_source(inside, step), context());
  sys::Fd target = TRY_CTX(open_bind_target(inside.root, view, step), context());
  TRY_CTX(refuse_kernel_target(target, step.target), context());
  sys::Fd attached =
      TRY_CTX(attach(std::move(view), target, step.attributes, step.target), context());
  if (step.target == "/dev") inside.own_dev.reset();
  remember_view(inside, step.target, std::move(attached));
  return {};
}

Result<void> change_mount(Inside& inside, const plan::ChangeMount& step) {
  std::string context = "cannot change the mount at " + quote(step.target);
  sys::Fd place = TRY_CTX(sys::open_in_root(inside.root, step.target, O_PATH), context);
  auto explain = [&](Error error) {
    if (error.sys_errno != EINVAL) return std::move(error).with_context(context);
    return make_error(Kind::usage, "nothing is mounted there, or the options do not fit")
        .with_context(context);
  };
  if (step.super_block) {
    std::vector<std::string> data = step.data;
    uint64_t now = TRY(sys::mount_attributes(place, step.target));
    unsigned long flags = MS_REMOUNT | take_mount_flags(data) |
                          mount_flags((now & ~step.attributes.clear) | step.attributes.set);
    auto changed = sys::mount(step.source, sys::fd_path(place), step.type, flags, join(data, ","));
    if (!changed.ok()) return explain(sys_error(changed.error().sys_errno, "remount"));
  }
  auto changed = set_attributes(place, step.attributes, step.target);
  return changed.ok() ? std::move(changed) : explain(std::move(changed).error());
}

Result<void> mount_cgroups(Inside& inside, const plan::MountCgroups& step) {
  std::string context = cannot_mount_on("cgroup", step.target);
  sys::Fd target = TRY_CTX(open_target(inside.root, step.target, TargetType::directory), context);
  TRY_CTX(refuse_kernel_target(target, step.target), context);
  const auto& cgroups = inside.cgroups;
  for (const auto& [directory, name, links] : cgroups) {
    if (!name.empty() && !(step.unified && name == "unified")) continue;
    TRY_CTX(bind_cgroup(directory, target, step), context);
    return {};
  }
  if (step.unified) {
    return make_error(Kind::unsupported, "the container is in no cgroup of version 2")
        .with_context(context);
  }
  // Only the container's own directories appear. If there are none (no permission for cgroups), an
  // empty directory covers those of the machine.
  plan::MountAttributes harmless;
  harmless.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  NewMount tmpfs =
      TRY_CTX(make_file_system("tmpfs", "cgroup", {"mode=755"}, harmless.set), context);
  sys::Fd base = TRY_CTX(attach(std::move(tmpfs), target, harmless, step.target), context);
  for (const auto& [directory, name, links] : cgroups) {
    if (step.without_unified && name == "unified") continue;
    TRY_CTX(sys::make_new_directory(base, name, 0755), context);
    sys::Fd place = TRY_CTX(sys::open_at(base, name, O_PATH | O_DIRECTORY | O_NOFOLLOW), context);
    TRY_CTX(bind_cgroup(directory, place, step), context);
    for (const std::string& link : links) TRY_CTX(sys::make_symlink(name, base, link), context);
  }
  if (step.attributes.set & MOUNT_ATTR_RDONLY) {
    TRY_CTX(set_attributes(base, read_only(), step.target), context);
  }
  return {};
}

Result<void> mask_paths(Inside& inside, const plan::MaskPaths& step) {
  for (const auto& path : step.paths) {
    TRY_CTX(mask(inside, path), "cannot mask " + quote(path));
  }
  return {};
}

Result<void> make_readonly(Inside& inside, const plan::MakeReadonly& step) {
  plan::MountAttributes readonly;
  readonly.recursive_set = MOUNT_ATTR_RDONLY;
  for (const auto& path : step.paths) {
    std::string context = "cannot make " + quote(path) + " read-only";
    auto target = open_restricted(inside, path);
    if (!target.ok() &&
        (target.error().kind == Kind::not_found || target.error().sys_errno == ENOTDIR)) {
      continue;
    }
    if (!target.ok()) return std::move(target).error().with_context(context);
    NewMount view = TRY_CTX(make_view(*target, true, path), context);
    TRY_CTX(attach(std::move(view), *target, readonly, path), context);
  }
  return {};
}

namespace {

// Without pivot_root(2) the host's mounts stay behind the container's root. If a procfs or sysfs
// without masks were among them, a user namespace in the container could mount another one without
// masks (the kernel's mount_too_revealing()), with /proc/sysrq-trigger and the machine's settings.
Result<void> close_kernel_views(const sys::Fd& root) {
  std::string own = TRY(sys::read_link(sys::cwd(), sys::fd_path(root)));
  auto mounts = TRY(sys::mount_table());
  std::ranges::reverse(mounts);  // a mount on top of another one comes later in the table
  for (const sys::MountEntry& mount : mounts) {
    if (mount.type != "proc" && mount.type != "sysfs") continue;
    const std::string& point = mount.point;
    if (own == "/" || point == own || point.starts_with(own + "/")) continue;
    if (sys::detach(point).ok()) continue;
    // The mount is locked in another user namespace. Covering hides it as well as unmounting.
    constexpr unsigned long kEmpty = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    TRY(sys::mount("tmpfs", point, "tmpfs", kEmpty, "size=4k"));
  }
  return {};
}

Result<void> move_root(Inside& inside) {
  TRY_CTX(close_kernel_views(inside.root), "cannot hide the host's /proc and /sys");
  return sys::move_root(inside.root);
}

}  // namespace

Result<void> enter_root(Inside& inside, const plan::EnterRoot& step) {
  if (!step.directory.empty()) {
    // If the directory cannot be made, entering it reports why.
    ignore(open_target(inside.root, step.directory, TargetType::directory, MakeIn::mount_of_root));
  }
  if (step.readonly) TRY(set_attributes(inside.root, read_only(), "/"));
  auto entered = inside.prepared.no_pivot
                     ? Result<void>(make_error(Kind::unsupported, "pivot_root"))
                     : sys::pivot_root(inside.root);
  if (!entered.ok() && entered.error().kind == Kind::unsupported) {
    entered = move_root(inside);
  }
  TRY(std::move(entered));
  if (step.propagation) {
    unsigned long recursive = step.propagation->recursive ? MS_REC : 0;
    TRY(sys::mount("", "/", "", propagation_flag(step.propagation->type) | recursive, ""));
  }
  // From here on processes of a joined pid namespace could trace this one.
  return sys::forbid_tracing();
}

}  // namespace berth::runtime
