// SPDX-License-Identifier: Apache-2.0
#include "runtime/mount/target.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include <string_view>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/root_walk.hpp"
#include "sys/mount/mount.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

constexpr std::string_view kDev = "/dev/";

Result<sys::Fd> make_missing(const sys::Fd& parent, const std::string& name, TargetType type) {
  if (type == TargetType::directory) {
    TRY(sys::make_new_directory(parent, name, 0755));
    return sys::open_at(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  }
  return sys::open_at(parent, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0644);
}

Result<bool> is_same_mount(const sys::Fd& place, const sys::Fd& root, const std::string& path) {
  return TRY(sys::mount_id(place, path)) == TRY(sys::mount_id(root, "/"));
}

Result<void> check_same_mount(const sys::Fd& place, const sys::Fd& root, const std::string& path) {
  if (TRY(is_same_mount(place, root, path))) return {};
  return lies_in_another_mount(path);
}

// Neither a link nor a process that renames directories meanwhile can lead out of `root`.
Result<sys::Fd> make_in_root(const sys::Fd& root, const std::string& path, TargetType type,
                             MakeIn where) {
  sys::RootWalk walk = TRY(sys::RootWalk::begin(root, path));
  while (auto name = walk.next()) {
    bool last = walk.is_last();
    auto entry = TRY(sys::stat_entry(walk.directory(), *name));
    if (!entry) {
      if (where == MakeIn::mount_of_root) TRY(check_same_mount(walk.directory(), root, path));
      sys::Fd made =
          TRY(make_missing(walk.directory(), *name, last ? type : TargetType::directory));
      walk.enter(std::move(made));
    } else if (S_ISLNK(entry->st_mode)) {
      // The target string of a magic link describes a place outside of the root; here it would be
      // taken for a path.
      auto file_system = TRY(sys::file_system_type(walk.directory(), path));
      if (file_system == PROC_SUPER_MAGIC) {
        return make_error(Kind::denied, "open " + quote(path) + ": nothing can be created there");
      }
      TRY(walk.follow(*name));
    } else {
      int flags = O_PATH | O_NOFOLLOW | (last ? 0 : O_DIRECTORY);
      sys::Fd found = TRY(sys::open_at(walk.directory(), *name, flags));
      walk.enter(std::move(found));
    }
  }
  return std::move(walk).directory();
}

// The usual case, in three steps: only the last name is missing.
Result<sys::Fd> make_last(const sys::Fd& root, const std::string& path, TargetType type,
                          MakeIn where) {
  size_t slash = path.rfind('/');
  std::string name = path.substr(slash + 1);
  if (slash == std::string::npos || name.empty() || name == "." || name == "..") {
    return make_error(Kind::usage, "make " + quote(path));
  }
  sys::Fd parent =
      TRY(sys::open_in_root(root, slash == 0 ? "/" : path.substr(0, slash), O_PATH | O_DIRECTORY));
  if (where == MakeIn::mount_of_root) TRY(check_same_mount(parent, root, path));
  // Fails if the name is a dangling link; make_in_root() then makes the target of the link.
  return make_missing(parent, name, type);
}

}  // namespace

Result<sys::Fd> open_target(const sys::Fd& root, const std::string& path, TargetType type,
                            MakeIn where) {
  auto found = sys::open_in_root(root, path, O_PATH);
  if (found.ok() || found.error().kind != Kind::not_found) return found;
  auto made = make_last(root, path, type, where);
  return made.ok() ? std::move(made) : make_in_root(root, path, type, where);
}

Result<sys::Fd> open_exact_target(const sys::Fd& root, const std::string& path) {
  auto found = sys::open_in_root(root, path, O_PATH | O_NOFOLLOW);
  if (!found.ok() && found.error().kind == Kind::not_found) {
    auto made = make_last(root, path, TargetType::directory, MakeIn::any_mount);
    if (made.ok()) return made;
    return make_in_root(root, path, TargetType::directory, MakeIn::any_mount);
  }
  if (!found.ok()) return found;
  struct stat info = TRY(sys::stat_fd(*found, path));
  if (S_ISLNK(info.st_mode)) {
    return make_error(Kind::denied, quote(path) + " is a symbolic link in the image");
  }
  if (!S_ISDIR(info.st_mode)) {
    return make_error(Kind::denied, quote(path) + " is not a directory in the image");
  }
  return found;
}

Result<Parents::Place> Parents::open(const sys::Fd& root, const sys::Fd& own_dev,
                                     const std::string& path) {
  size_t slash = path.rfind('/');
  std::string name = path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return make_error(Kind::usage, "make " + quote(path) + ": not a name");
  }
  std::string directory = path.substr(0, slash + 1);
  if (!directory_ || directory != path_) {
    bool in_dev = own_dev && directory.starts_with(kDev);
    const sys::Fd& base = in_dev ? own_dev : root;
    std::string below = directory.substr(in_dev ? kDev.size() - 1 : 0);
    if (below.size() > 1) below.pop_back();
    directory_ = TRY(open_target(base, below, TargetType::directory, MakeIn::mount_of_root));
    is_own_ = below == "/" || TRY(is_same_mount(directory_, base, path));
    path_ = std::move(directory);
  }
  return Place{directory_, std::move(name), is_own_};
}

Error lies_in_another_mount(const std::string& path) {
  return make_error(Kind::denied, "make " + quote(path) + ": it is in another mount",
                    "create it in the mounted file system, or mount that elsewhere");
}

}  // namespace berth::runtime
