// SPDX-License-Identifier: Apache-2.0
#include "runtime/mount/attach.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/table.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMaxOption = 255;  // the longest value that fsconfig(2) takes

// These flags may stay if they are locked: the mount is then more confined than requested.
constexpr uint64_t kRestrictions =
    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODIRATIME;

bool is_missing(const Error& error) {
  return error.sys_errno == ENOSYS;
}

Result<sys::Fd> make_detached(const std::string& type, const std::string& source,
                              const std::vector<std::string>& data, uint64_t attributes) {
  sys::Fd context = TRY(sys::fsopen(type));
  if (!source.empty()) TRY(sys::fsconfig_string(context, "source", source));
  // A read-only device can only be opened for reading.
  if ((attributes & MOUNT_ATTR_RDONLY) && source.starts_with("/")) {
    TRY(sys::fsconfig_flag(context, "ro"));
  }
  for (const auto& option : data) TRY(sys::fsconfig_option(context, option));
  TRY(sys::fsconfig_create(context));
  return sys::fsmount(context, static_cast<unsigned>(attributes));
}

bool fits_fsconfig(const std::string& option) {
  return option.size() - std::min(option.find('='), option.size()) <= kMaxOption;
}

std::set<uint64_t> mount_ids(const std::vector<sys::MountEntry>& table) {
  std::set<uint64_t> ids;
  for (const auto& entry : table) ids.insert(entry.id);
  return ids;
}

// The mount on `place` that is in the mount table and not in `before`. Other new mounts may have
// propagated from the host meanwhile.
Result<sys::Fd> find_new_mount(const std::set<uint64_t>& before, const sys::Fd& place,
                               const std::string& name) {
  uint64_t parent = TRY(sys::mount_id(place, name));
  std::string point = TRY(sys::read_link(sys::cwd(), sys::fd_path(place)));
  std::vector<sys::MountEntry> table = TRY(sys::mount_table());
  for (const auto& entry : table) {
    bool on_place = entry.parent == parent && entry.point == point;
    if (on_place && !before.contains(entry.id)) return sys::open_mount(entry);
  }
  return make_error(Kind::busy, "find the mount at " + quote(name));
}

// COMPAT(5.2): delete when that is our baseline. Mounts directly on the target, by the path of its
// handle. Finds the new mount in the mount table, not by a path of the image.
Result<sys::Fd> mount_in_place(NewMount mount, const sys::Fd& target, uint64_t attributes,
                               const std::string& name) {
  std::set<uint64_t> before = mount_ids(TRY(sys::mount_table()));
  std::string place = sys::fd_path(target);
  if (mount.viewed != nullptr) {
    std::string from = sys::fd_path(*mount.viewed);
    auto bound = sys::mount(from, place, "", MS_BIND | (mount.recursive ? MS_REC : 0UL), "");
    if (!bound.ok() && !mount.recursive && bound.error().sys_errno == EINVAL) {
      bound = sys::mount(from, place, "", MS_BIND | MS_REC, "");
    }
    if (!bound.ok()) return sys_error(bound.error().sys_errno, "mount at " + quote(name));
  } else {
    unsigned long flags = mount_flags(attributes) | take_mount_flags(mount.data);
    auto made = sys::mount(mount.source, place, mount.type, flags, join(mount.data, ","));
    if (!made.ok()) return sys_error(made.error().sys_errno, "make file system");
  }
  return find_new_mount(before, target, name);
}

Result<void> remount_one(const sys::Fd& mount, uint64_t set, uint64_t clear,
                         const std::string& name) {
  uint64_t now = TRY(sys::mount_attributes(mount, name));
  return sys::mount("", sys::fd_path(mount), "",
                    MS_REMOUNT | MS_BIND | mount_flags((now & ~clear) | set), "");
}

Result<void> remount_below(const sys::Fd& mount, uint64_t set, uint64_t clear,
                           const std::string& name) {
  std::set<uint64_t> above{TRY(sys::mount_id(mount, name))};
  std::vector<sys::MountEntry> table = TRY(sys::mount_table());
  // In the mount table a mount comes after its parent.
  for (const auto& entry : table) {
    if (!above.contains(entry.parent)) continue;
    above.insert(entry.id);
    sys::Fd below = TRY(sys::open_mount(entry));
    TRY(remount_one(below, set, clear, entry.point));
  }
  return {};
}

// COMPAT(5.12): delete when that is our baseline. The mount is attached already; its descriptor
// still refers to it.
Result<void> remount(const sys::Fd& mount, const plan::MountAttributes& attributes,
                     const std::string& name) {
  uint64_t set = attributes.set | attributes.recursive_set;
  uint64_t clear = attributes.clear | attributes.recursive_clear;
  if (set != 0 || clear != 0) TRY(remount_one(mount, set, clear, name));
  if (attributes.recursive_set != 0 || attributes.recursive_clear != 0) {
    TRY(remount_below(mount, attributes.recursive_set, attributes.recursive_clear, name));
  }
  if (!attributes.propagation) return {};
  unsigned long recursive = attributes.propagation->recursive ? MS_REC : 0;
  return sys::mount("", sys::fd_path(mount), "",
                    propagation_flag(attributes.propagation->type) | recursive, "");
}

// A namespace cannot clear flags that the kernel has locked because the mount comes from a more
// privileged namespace. runc keeps such restrictions too.
Result<void> change(const sys::Fd& mount, uint64_t set, uint64_t clear, sys::Recursive recursive,
                    const std::string& name) {
  if (set == 0 && clear == 0) return {};
  auto done = sys::mount_setattr(mount, set, clear, 0, recursive, name);
  bool default_times = (set & MOUNT_ATTR__ATIME) == MOUNT_ATTR_RELATIME;
  uint64_t borne = clear & (kRestrictions | (default_times ? MOUNT_ATTR__ATIME : 0));
  if (done.ok() || done.error().sys_errno != EPERM || borne == 0) return done;
  if (set == 0 && clear == borne) return {};
  return sys::mount_setattr(mount, set, clear & ~borne, 0, recursive, name);
}

Result<void> set_by_handle(const sys::Fd& mount, const plan::MountAttributes& attributes,
                           const std::string& name) {
  TRY(change(mount, attributes.set, attributes.clear, sys::Recursive::no, name));
  TRY(change(mount, attributes.recursive_set, attributes.recursive_clear, sys::Recursive::yes,
             name));
  if (!attributes.propagation) return {};
  auto recursive = attributes.propagation->recursive ? sys::Recursive::yes : sys::Recursive::no;
  return sys::mount_setattr(mount, 0, 0, propagation_flag(attributes.propagation->type), recursive,
                            name);
}

// Empty if the kernel has no detached mounts.
Result<sys::Fd> clone_tree(const sys::Fd& from, const std::string& path, bool recursive) {
  unsigned view = OPEN_TREE_CLONE | (path.empty() ? AT_EMPTY_PATH : 0U);
  auto tree = sys::open_tree(from, path, view | (recursive ? AT_RECURSIVE : 0U));
  if (!tree.ok() && !recursive && tree.error().sys_errno == EINVAL) {
    tree = sys::open_tree(from, path, view | AT_RECURSIVE);
  }
  if (!tree.ok() && is_missing(tree.error())) return sys::Fd();
  return tree;
}

bool can_be_remade(const NewMount& mount) {
  return mount.viewed != nullptr || !mount.path.empty() || !mount.type.empty();
}

Error explain_mismatch(Error error, const sys::Fd& mount, const sys::Fd& target) {
  if (error.sys_errno != ENOTDIR && error.sys_errno != EINVAL) return error;
  auto source = sys::stat_fd(mount, "source");
  auto place = sys::stat_fd(target, "target");
  if (!source.ok() || !place.ok() || S_ISDIR(source->st_mode) == S_ISDIR(place->st_mode)) {
    return error;
  }
  return make_error(Kind::usage, S_ISDIR(source->st_mode)
                                     ? "the source is a directory and the target a file"
                                     : "the source is a file and the target a directory");
}

}  // namespace

unsigned long mount_flags(uint64_t attributes) {
  unsigned long flags = 0;
  if (attributes & MOUNT_ATTR_RDONLY) flags |= MS_RDONLY;
  if (attributes & MOUNT_ATTR_NOSUID) flags |= MS_NOSUID;
  if (attributes & MOUNT_ATTR_NODEV) flags |= MS_NODEV;
  if (attributes & MOUNT_ATTR_NOEXEC) flags |= MS_NOEXEC;
  if (attributes & MOUNT_ATTR_NODIRATIME) flags |= MS_NODIRATIME;
  if (attributes & MOUNT_ATTR_NOSYMFOLLOW) flags |= MS_NOSYMFOLLOW;
  if ((attributes & MOUNT_ATTR__ATIME) == MOUNT_ATTR_NOATIME) flags |= MS_NOATIME;
  if ((attributes & MOUNT_ATTR__ATIME) == MOUNT_ATTR_STRICTATIME) flags |= MS_STRICTATIME;
  return flags;
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

unsigned long take_mount_flags(std::vector<std::string>& data) {
  struct Word {
    std::string_view name;
    unsigned long flag;
  };
  static constexpr std::array kWords = {Word{"sync", MS_SYNCHRONOUS}, Word{"dirsync", MS_DIRSYNC},
                                        Word{"lazytime", MS_LAZYTIME}, Word{"mand", MS_MANDLOCK}};
  unsigned long flags = 0;
  for (const auto& word : kWords) {
    if (std::erase(data, word.name) != 0) flags |= word.flag;
  }
  return flags;
}

Result<NewMount> make_file_system(const std::string& type, const std::string& source,
                                  const std::vector<std::string>& data, uint64_t attributes) {
  NewMount mount;
  mount.type = type;
  mount.source = source;
  mount.data = data;
  // Only mount(2) accepts a long option (the layers of an overlay).
  if (!std::ranges::all_of(data, fits_fsconfig)) return mount;
  auto made = make_detached(type, source, data, attributes);
  if (made.ok()) {
    mount.detached = std::move(made).value();
  } else if (!is_missing(made.error())) {
    return std::move(made).error();
  }
  return mount;
}

Result<NewMount> make_view(const sys::Fd& from, bool recursive, const std::string& name) {
  NewMount mount;
  mount.viewed = &from;
  mount.recursive = recursive;
  auto tree = clone_tree(from, "", recursive);
  if (!tree.ok()) return sys_error(tree.error().sys_errno, "open tree " + quote(name));
  mount.detached = std::move(tree).value();
  return mount;
}

Result<NewMount> make_view_of(const std::string& path, bool recursive) {
  NewMount mount;
  mount.path = path;
  mount.recursive = recursive;
  auto tree = clone_tree(sys::cwd(), path, recursive);
  if (!tree.ok()) return sys_error(tree.error().sys_errno, "open " + quote(path));
  mount.detached = std::move(tree).value();
  return mount;
}

Result<sys::Fd> attach(NewMount mount, const sys::Fd& target,
                       const plan::MountAttributes& attributes, const std::string& name) {
  if (mount.detached) {
    plan::MountAttributes later = attributes;
    if (!mount.type.empty()) later.set = later.clear = 0;  // fsmount() has set them already
    auto set = set_by_handle(mount.detached, later, name);
    if (!set.ok() && !is_missing(set.error())) return std::move(set).error();
    auto moved = sys::move_mount_to_fd(mount.detached, target, name);
    if (moved.ok()) {
      if (!set.ok()) TRY(remount(mount.detached, later, name));
      return std::move(mount.detached);
    }
    bool remake = is_missing(moved.error()) && can_be_remade(mount);
    if (!remake) return explain_mismatch(std::move(moved).error(), mount.detached, target);
  }
  sys::Fd opened;
  if (!mount.path.empty()) {
    opened = TRY(sys::open_at(sys::cwd(), mount.path, O_PATH));
    mount.viewed = &opened;
  }
  const sys::Fd* viewed = mount.viewed;
  auto made = mount_in_place(std::move(mount), target, attributes.set, name);
  if (!made.ok() && viewed != nullptr) {
    return explain_mismatch(std::move(made).error(), *viewed, target);
  }
  sys::Fd attached = TRY(std::move(made));
  TRY(set_attributes(attached, attributes, name));
  return attached;
}

Result<void> set_attributes(const sys::Fd& mount, const plan::MountAttributes& attributes,
                            const std::string& name) {
  auto set = set_by_handle(mount, attributes, name);
  return !set.ok() && is_missing(set.error()) ? remount(mount, attributes, name) : std::move(set);
}

}  // namespace berth::runtime
