// SPDX-License-Identifier: Apache-2.0
#include "runtime/mounts.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "runtime/target.hpp"
#include "sys/credentials.hpp"
#include "sys/file.hpp"
#include "sys/mount.hpp"
#include "sys/namespace.hpp"
#include "sys/node.hpp"

namespace berth::runtime {
namespace {

constexpr unsigned kCloneOne = OPEN_TREE_CLONE;
constexpr unsigned kCloneAll = OPEN_TREE_CLONE | AT_RECURSIVE;
constexpr uint64_t kHarmless =
    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

std::string cannot_mount(const std::string& what, const std::string& target) {
  return "cannot mount " + quoted(what) + " at " + quoted(target);
}

uint64_t propagation_flag(plan::Propagation type) {
  switch (type) {
    case plan::Propagation::shared:
      return MS_SHARED;
    case plan::Propagation::slave:
      return MS_SLAVE;
    case plan::Propagation::private_:
      return MS_PRIVATE;
    case plan::Propagation::unbindable:
      return MS_UNBINDABLE;
  }
  return 0;
}

// mount(2)'s spelling of MOUNT_ATTR_*, for kernels without mount_setattr.
unsigned long old_flags(uint64_t attributes) {
  unsigned long flags = 0;
  if (attributes & MOUNT_ATTR_RDONLY) flags |= MS_RDONLY;
  if (attributes & MOUNT_ATTR_NOSUID) flags |= MS_NOSUID;
  if (attributes & MOUNT_ATTR_NODEV) flags |= MS_NODEV;
  if (attributes & MOUNT_ATTR_NOEXEC) flags |= MS_NOEXEC;
  if (attributes & MOUNT_ATTR_NODIRATIME) flags |= MS_NODIRATIME;
  if ((attributes & MOUNT_ATTR__ATIME) == MOUNT_ATTR_NOATIME) flags |= MS_NOATIME;
  if ((attributes & MOUNT_ATTR__ATIME) == MOUNT_ATTR_STRICTATIME) flags |= MS_STRICTATIME;
  return flags;
}

// COMPAT(5.12): delete when that is our baseline. The mount is attached already; its descriptor
// still names it.
Result<void> remount(const sys::Fd& mount, const plan::MountAttributes& attributes) {
  std::string path = sys::fd_path(mount);
  uint64_t set = attributes.set | attributes.recursive_set;
  if (set != 0) {
    TRY(sys::mount("", path, "", MS_REMOUNT | MS_BIND | old_flags(set), ""));
  }
  if (attributes.propagation) {
    unsigned long recursive = attributes.propagation->recursive ? MS_REC : 0;
    TRY(sys::mount("", path, "", propagation_flag(attributes.propagation->type) | recursive, ""));
  }
  return {};
}

// Applied while the mount is still detached, so that nobody ever sees it with fewer restrictions.
Result<void> set_attributes(const sys::Fd& mount, const plan::MountAttributes& attributes,
                            const std::string& name) {
  if (attributes.set != 0 || attributes.clear != 0) {
    TRY(sys::mount_setattr(mount, attributes.set, attributes.clear, 0, sys::Recursive::no, name));
  }
  if (attributes.recursive_set != 0 || attributes.recursive_clear != 0) {
    TRY(sys::mount_setattr(mount, attributes.recursive_set, attributes.recursive_clear, 0,
                           sys::Recursive::yes, name));
  }
  if (attributes.propagation) {
    auto recursive = attributes.propagation->recursive ? sys::Recursive::yes : sys::Recursive::no;
    TRY(sys::mount_setattr(mount, 0, 0, propagation_flag(attributes.propagation->type), recursive,
                           name));
  }
  return {};
}

Result<void> attach(const sys::Fd& mount, const sys::Fd& target,
                    const plan::MountAttributes& attributes, const std::string& name) {
  auto set = set_attributes(mount, attributes, name);
  bool old_kernel = !set.ok() && set.error().kind == Kind::unsupported;
  if (!set.ok() && !old_kernel) return set;
  TRY(sys::move_mount_to_fd(mount, target, name));
  return old_kernel ? remount(mount, attributes) : Result<void>();
}

Result<sys::Fd> make_file_system(const std::string& type, const std::string& source,
                                 const std::vector<std::string>& data, uint64_t attributes) {
  sys::Fd context = TRY(sys::fsopen(type));
  if (!source.empty()) TRY(sys::fsconfig_string(context, "source", source));
  for (const std::string& option : data) {
    size_t equals = option.find('=');
    if (equals == std::string::npos) {
      TRY(sys::fsconfig_flag(context, option));
    } else {
      TRY(sys::fsconfig_string(context, option.substr(0, equals), option.substr(equals + 1)));
    }
  }
  TRY(sys::fsconfig_create(context));
  return sys::fsmount(context, static_cast<unsigned>(attributes));
}

/// The directories of an overlay by handle: names of any length and with any character fit the
/// option string then, and the container's mount table does not show the host's paths.
struct OverlayDirectories {
  std::vector<sys::Fd> lower;
  sys::Fd upper;
  sys::Fd work;
};

Result<OverlayDirectories> open_overlay(const plan::MountOverlayRoot& step) {
  OverlayDirectories opened;
  auto open = [](const std::string& path) {
    return sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY);
  };
  for (const auto& path : step.lower) opened.lower.push_back(TRY(open(path)));
  if (step.upper.empty()) return opened;
  opened.upper = TRY(open(step.upper));
  opened.work = TRY(open(step.work));
  return opened;
}

Result<sys::Fd> mount_overlay(const plan::MountOverlayRoot& step,
                              const OverlayDirectories& directories) {
  sys::Fd context = TRY(sys::fsopen("overlay"));
  TRY(sys::fsconfig_string(context, "source", "overlay"));
  for (const auto& layer : directories.lower) {
    TRY(sys::fsconfig_string(context, "lowerdir+", sys::fd_path(layer)));
  }
  if (directories.upper) {
    TRY(sys::fsconfig_string(context, "upperdir", sys::fd_path(directories.upper)));
    TRY(sys::fsconfig_string(context, "workdir", sys::fd_path(directories.work)));
  }
  for (const auto& option : step.options) {
    size_t equals = option.find('=');
    if (equals == std::string::npos) {
      TRY(sys::fsconfig_flag(context, option));
    } else {
      TRY(sys::fsconfig_string(context, option.substr(0, equals), option.substr(equals + 1)));
    }
  }
  TRY(sys::fsconfig_create(context));
  return sys::fsmount(context, static_cast<unsigned>(step.attributes.set));
}

// COMPAT(6.5): delete when that is our baseline. One string for all layers, at most a page.
Result<void> mount_overlay_at(const plan::MountOverlayRoot& step,
                              const OverlayDirectories& directories, const sys::Fd& target) {
  std::string data = "lowerdir=";
  for (size_t i = 0; i < directories.lower.size(); ++i) {
    if (i > 0) data += ':';
    data += sys::fd_path(directories.lower[i]);
  }
  if (directories.upper) {
    data += ",upperdir=" + sys::fd_path(directories.upper);
    data += ",workdir=" + sys::fd_path(directories.work);
  }
  for (const auto& option : step.options) data += "," + option;
  return sys::mount("overlay", sys::fd_path(target), "overlay", old_flags(step.attributes.set),
                    data);
}

// A bind of a mount that this user namespace may not take apart has to take all of it.
Result<sys::Fd> clone_tree(const sys::Fd& dir, const std::string& path, bool recursive,
                           unsigned flags) {
  auto tree = sys::open_tree(dir, path, (recursive ? kCloneAll : kCloneOne) | flags);
  if (!tree.ok() && !recursive && tree.error().sys_errno == EINVAL) {
    return sys::open_tree(dir, path, kCloneAll | flags);
  }
  return tree;
}

Error explain_mismatch(Error error, const sys::Fd& target, bool source_is_directory) {
  if (error.sys_errno != ENOTDIR && error.sys_errno != EINVAL) return error;
  auto info = sys::stat_fd(target, "target");
  if (!info.ok() || S_ISDIR(info->st_mode) == source_is_directory) return error;
  return make_error(Kind::usage, source_is_directory
                                     ? "the source is a directory and the target a file"
                                     : "the source is a file and the target a directory");
}

// A link in the image may lead a bind onto procfs, sysfs or a cgroup, where the file would stand in
// for one that privileged processes believe.
Result<void> refuse_kernel_target(const sys::Fd& target, const std::string& path) {
  if (path.starts_with("/proc/")) return {};  // plan::make() let through only what may be covered
  long type = TRY(sys::file_system_type(target, path));
  if (path.starts_with("/sys/") && type != PROC_SUPER_MAGIC) return {};
  constexpr long kKernels[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,   CGROUP_SUPER_MAGIC,
                               CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
                               SECURITYFS_MAGIC,    BPF_FS_MAGIC};
  if (std::find(std::begin(kKernels), std::end(kKernels), type) == std::end(kKernels)) return {};
  return make_error(Kind::denied, quoted(path) + " leads into the kernel's file systems");
}

Result<void> bind_over(const sys::Fd& source, const sys::Fd& target, const std::string& path) {
  sys::Fd tree = TRY(clone_tree(source, "", false, AT_EMPTY_PATH));
  return sys::move_mount_to_fd(tree, target, path);
}

Result<void> mask_file(Inside& inside, const sys::Fd& target, const std::string& path) {
  if (!inside.null_device) {
    inside.null_device = TRY(sys::open_at(sys::cwd(), "/dev/null", O_PATH | O_NOFOLLOW));
    if (!TRY(sys::is_device(inside.null_device, "c", 1, 3, "/dev/null"))) {
      return make_error(Kind::denied, "'/dev/null' of the host is not the null device");
    }
  }
  return bind_over(inside.null_device, target, path);
}

Result<void> mask_directory(Inside& inside, const sys::Fd& target, const std::string& path) {
  if (inside.empty_tree) return bind_over(inside.empty_tree, target, path);
  // One for all: each tmpfs of its own costs a super block at start and at the end.
  inside.empty_tree =
      TRY(make_file_system("tmpfs", "tmpfs", {"size=4k", "nr_inodes=2", "mode=755"}, kHarmless));
  return sys::move_mount_to_fd(inside.empty_tree, target, path);
}

void remember_view(Inside& inside, const std::string& path, sys::Fd mount) {
  if (path == "/proc" || path == "/sys") inside.kernel_views.emplace_back(path, std::move(mount));
}

// Below /proc and /sys by the handle of what was mounted there: whoever can write to the image may
// have exchanged the directory's name since, and a path that is missing is not restricted
// (CVE-2019-19921, CVE-2023-28642).
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

}  // namespace

Result<void> isolate_mounts() {
  return sys::mount("", "/", "", MS_REC | MS_SLAVE, "");
}

Result<void> mount_overlay_root(Inside& inside, const plan::MountOverlayRoot& step) {
  const char* context = "cannot mount the root file system";
  sys::Fd target = TRY_CTX(sys::open_at(sys::cwd(), step.target, O_PATH | O_DIRECTORY), context);
  OverlayDirectories directories = TRY_CTX(open_overlay(step), context);
  auto mount = mount_overlay(step, directories);
  if (mount.ok()) {
    TRY(sys::move_mount_to_fd(*mount, target, "/"));
    inside.root = std::move(mount).value();
    return {};
  }
  // An older kernel refuses "lowerdir+", at once or only when the file system is made. When the old
  // way fails too, the first reason is the true one.
  bool old_kernel = mount.error().sys_errno == EINVAL;
  if (!old_kernel || !mount_overlay_at(step, directories, target).ok()) {
    return std::move(mount).error().with_context(context);
  }
  inside.root = TRY(sys::open_at(sys::cwd(), step.target, O_PATH | O_DIRECTORY));
  return {};
}

Result<void> bind_root(Inside& inside, const plan::BindRoot& step) {
  sys::Fd target = TRY_CTX(sys::open_at(sys::cwd(), step.path, O_PATH | O_DIRECTORY),
                           "cannot mount the root file system");
  sys::Fd tree = TRY(clone_tree(target, "", true, AT_EMPTY_PATH));
  TRY(sys::move_mount_to_fd(tree, target, "/"));
  inside.root = std::move(tree);
  return {};
}

Result<void> mount_file_system(Inside& inside, const plan::MountFilesystem& step) {
  std::string context = cannot_mount(step.type, step.target);
  sys::Fd target =
      TRY_CTX(step.exact ? open_exact_target(inside.root, step.target)
                         : open_target(inside.root, step.target, TargetType::directory),
              context);
  if (!step.exact) TRY_CTX(refuse_kernel_target(target, step.target), context);
  sys::Fd mount =
      TRY_CTX(make_file_system(step.type, step.source, step.data, step.attributes.set), context);
  plan::MountAttributes later;  // those of the mount itself were given to fsmount
  later.recursive_set = step.attributes.recursive_set;
  later.recursive_clear = step.attributes.recursive_clear;
  later.propagation = step.attributes.propagation;
  TRY_CTX(attach(mount, target, later, step.target), context);
  remember_view(inside, step.target, std::move(mount));
  return {};
}

Result<void> mount_bind(Inside& inside, const plan::MountBind& step) {
  std::string context = cannot_mount(step.source, step.target);
  sys::Fd tree = TRY_CTX(clone_tree(sys::cwd(), step.source, step.recursive, 0), context);
  struct stat info = TRY(sys::stat_fd(tree, step.source));
  bool directory = S_ISDIR(info.st_mode);
  sys::Fd target = TRY_CTX(
      open_target(inside.root, step.target, directory ? TargetType::directory : TargetType::file),
      context);
  TRY_CTX(refuse_kernel_target(target, step.target), context);
  auto attached = attach(tree, target, step.attributes, step.target);
  if (!attached.ok()) {
    return explain_mismatch(std::move(attached).error(), target, directory).with_context(context);
  }
  remember_view(inside, step.target, std::move(tree));
  return {};
}

Result<void> mount_cgroups(Inside& inside, const plan::MountCgroups& step) {
  std::string context = cannot_mount("cgroup", step.target);
  sys::Fd target = TRY_CTX(open_target(inside.root, step.target, TargetType::directory), context);
  TRY_CTX(refuse_kernel_target(target, step.target), context);
  const auto& cgroups = inside.cgroups;
  if (cgroups.size() == 1 && cgroups[0].second.empty()) {
    sys::Fd tree = TRY_CTX(clone_tree(sys::cwd(), cgroups[0].first, false, 0), context);
    TRY_CTX(attach(tree, target, step.attributes, step.target), context);
    return {};
  }
  // Only the container's own directories appear; without any (no permission for cgroups) an empty
  // directory hides the machine's.
  sys::Fd base = TRY_CTX(make_file_system("tmpfs", "cgroup", {"mode=755"},
                                          MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
                         context);
  for (const auto& [directory, name] : cgroups) {
    TRY_CTX(sys::make_new_directory(base, name, 0755), context);
  }
  TRY_CTX(sys::move_mount_to_fd(base, target, step.target), context);
  for (const auto& [directory, name] : cgroups) {
    sys::Fd tree = TRY_CTX(clone_tree(sys::cwd(), directory, false, 0), context);
    sys::Fd place = TRY_CTX(sys::open_at(base, name, O_PATH | O_DIRECTORY | O_NOFOLLOW), context);
    TRY_CTX(attach(tree, place, step.attributes, step.target), context);
  }
  if (step.attributes.set & MOUNT_ATTR_RDONLY) {
    plan::MountAttributes readonly;
    readonly.set = MOUNT_ATTR_RDONLY;
    auto set = set_attributes(base, readonly, step.target);
    if (!set.ok() && set.error().kind == Kind::unsupported) set = remount(base, readonly);
    TRY_CTX(std::move(set), context);
  }
  return {};
}

Result<void> mask_paths(Inside& inside, const plan::MaskPaths& step) {
  for (const auto& path : step.paths) {
    TRY_CTX(mask(inside, path), "cannot mask " + quoted(path));
  }
  return {};
}

Result<void> make_readonly(Inside& inside, const plan::MakeReadonly& step) {
  plan::MountAttributes readonly;
  readonly.recursive_set = MOUNT_ATTR_RDONLY;
  for (const auto& path : step.paths) {
    std::string context = "cannot make " + quoted(path) + " read-only";
    auto target = open_restricted(inside, path);
    if (!target.ok() &&
        (target.error().kind == Kind::not_found || target.error().sys_errno == ENOTDIR)) {
      continue;
    }
    if (!target.ok()) return std::move(target).error().with_context(context);
    sys::Fd tree = TRY_CTX(clone_tree(*target, "", true, AT_EMPTY_PATH), context);
    TRY_CTX(attach(tree, *target, readonly, path), context);
  }
  return {};
}

Result<void> enter_root(Inside& inside, const plan::EnterRoot& step) {
  if (step.readonly) {
    plan::MountAttributes readonly;
    readonly.set = MOUNT_ATTR_RDONLY;
    auto set = set_attributes(inside.root, readonly, "/");
    if (!set.ok() && set.error().kind == Kind::unsupported) set = remount(inside.root, readonly);
    TRY(std::move(set));
  }
  auto entered = inside.prepared.no_pivot
                     ? Result<void>(make_error(Kind::unsupported, "pivot_root"))
                     : sys::pivot_root(inside.root);
  if (!entered.ok() && entered.error().kind == Kind::unsupported) {
    entered = sys::move_root(inside.root);
  }
  TRY(std::move(entered));
  if (step.propagation) {
    TRY(sys::mount("", "/", "", propagation_flag(*step.propagation), ""));
  }
  // From here on processes of a joined pid namespace could look at this one.
  return sys::forbid_tracing();
}

}  // namespace berth::runtime
