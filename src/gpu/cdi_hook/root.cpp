// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi_hook/root.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/regular.hpp"
#include "sys/mount/mount.hpp"
#include "sys/user/namespace.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr const char* kTemporary = ".berth-";

std::string temporary_name() {
  return kTemporary + sys::random_hex(8);
}

Result<bool> is_in_mount_of(const sys::Fd& other, const sys::Fd& place, const std::string& path) {
  return TRY(sys::mount_id(other, path)) == TRY(sys::mount_id(place, path));
}

/// Whether `place` is in a mount that an engine makes for this container alone and in which our CDI
/// files have links.
Result<bool> is_in_own_mount(const sys::Fd& root, const sys::Fd& place, const std::string& path) {
  for (const std::string base : {"/dev", "/usr/local/nvidia"}) {
    if (!(path + "/").starts_with(base + "/")) continue;
    auto own = sys::open_in_root(root, base, O_PATH | O_DIRECTORY);
    if (!own.ok() || TRY(sys::file_system_type(*own, base)) != TMPFS_MAGIC) continue;
    if (TRY(is_in_mount_of(*own, place, path))) return true;
  }
  return false;
}

Error in_another_mount(const std::string& path) {
  return make_error(Kind::denied, quote(path) + " is in another mount");
}

Result<void> check_changeable(const sys::Fd& root, const sys::Fd& place, const std::string& path) {
  if (TRY(is_in_mount_of(root, place, path)) || TRY(is_in_own_mount(root, place, path))) return {};
  return in_another_mount(path);
}

/// Opens the directory `path`; makes it and its parents if they are missing.
Result<sys::Fd> open_or_make(const sys::Fd& root, const std::string& path) {
  auto found = sys::open_in_root(root, path, O_PATH | O_DIRECTORY);
  if (found.ok() || found.error().kind != Kind::not_found) return found;
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return found;
  sys::Fd parent = TRY(open_or_make(root, slash == 0 ? "/" : path.substr(0, slash)));
  TRY(check_changeable(root, parent, path));
  TRY(sys::make_directory(parent, path.substr(slash + 1), 0755));
  // Resolved again from the root, because the name may be a link of the image.
  return sys::open_in_root(root, path, O_PATH | O_DIRECTORY);
}

/// Whether `path`, resolved without following links, is in the mount of `place`. If so, no link of
/// the image led there.
Result<bool> is_named(const sys::Fd& root, const sys::Fd& place, const std::string& path) {
  sys::Fd exact = TRY(sys::duplicate(root));
  for (std::string_view name : split(path, '/')) {
    if (name.empty()) continue;
    auto next = sys::open_at(exact, std::string(name), O_PATH | O_NOFOLLOW);
    if (!next.ok()) return false;
    exact = std::move(*next);
  }
  return is_in_mount_of(exact, place, path);
}

/// Whether nothing can be made at this place: it is in a volume or on a read-only file system.
bool is_closed(const Error& error) {
  return error.kind == Kind::denied || error.sys_errno == EROFS;
}

Result<void> write_new(const Place& place, std::string_view bytes, const std::string& path) {
  std::string name = temporary_name();
  auto file =
      TRY(sys::open_at(place.directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  auto filled = [&]() -> Result<void> {
    TRY(sys::write_all(file, bytes, path));
    TRY(sys::change_mode(file, 0644, path));
    TRY(sys::close_checked(std::move(file), path));
    return sys::rename(place.directory, name, place.directory, place.name);
  }();
  if (!filled.ok()) ignore(sys::remove_entry(place.directory, name));  // the first error counts
  return filled;
}

}  // namespace

Result<Place> open_place(const sys::Fd& root, const std::string& path) {
  size_t slash = path.rfind('/');
  std::string name = path.substr(slash + 1);
  if (!path.starts_with('/') || name.empty() || name == "." || name == "..") {
    return make_error(Kind::usage, quote(path) + " is not the absolute path of a file");
  }
  return Place{TRY(open_or_make(root, slash == 0 ? "/" : path.substr(0, slash))), std::move(name)};
}

Result<void> put_link(const sys::Fd& root, const std::string& path, const std::string& target) {
  Place place = TRY(open_place(root, path));
  TRY(check_changeable(root, place.directory, path));
  auto there = TRY(sys::stat_entry(place.directory, place.name));
  if (there && S_ISLNK(there->st_mode)) {
    auto text = sys::read_link(place.directory, place.name);
    if (text.ok() && *text == target) return {};
  }
  std::string name = temporary_name();
  TRY(sys::make_symlink(target, place.directory, name));
  auto renamed = sys::rename(place.directory, name, place.directory, place.name);
  if (!renamed.ok()) ignore(sys::remove_entry(place.directory, name));  // the first error counts
  return renamed;
}

Result<void> put_file(const sys::Fd& root, const std::string& path, std::string_view bytes) {
  Place place = TRY(open_place(root, path));
  // Files in a volume are not replaced: the image must not choose a path in a volume.
  if (!TRY(is_in_mount_of(root, place.directory, path))) {
    if (!TRY(is_named(root, place.directory, path))) return in_another_mount(path);
    return cover_file(root, path, bytes);
  }
  auto written = write_new(place, bytes, path);
  if (written.ok() || written.error().sys_errno != EROFS) return written;
  return cover_file(root, path, bytes);
}

Result<void> cover_file(const sys::Fd& root, const std::string& path, std::string_view bytes) {
  sys::Fd target = TRY(sys::open_in_root(root, path, O_PATH | O_NOFOLLOW));
  if (!S_ISREG(TRY(sys::stat_fd(target, path)).st_mode)) {
    return make_error(Kind::usage, quote(path) + " is not a file");
  }
  sys::Fd context = TRY(sys::fsopen("tmpfs"));
  TRY(sys::fsconfig_string(context, "mode", "0755"));
  TRY(sys::fsconfig_create(context));
  constexpr unsigned kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  sys::Fd directory = TRY(sys::fsmount(context, kAttributes));
  TRY(sys::write_file(directory, "file", bytes, 0644));
  sys::Fd file = TRY(sys::open_tree(directory, "file", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  TRY(sys::mount_setattr(file, MOUNT_ATTR_RDONLY | kAttributes, 0, 0, sys::Recursive::no, path));
  return sys::move_mount_to_fd(file, target, path);
}

Result<void> put_optional_link(const sys::Fd& root, const std::string& path,
                               const std::string& target) {
  size_t slash = path.rfind('/');
  auto directory = sys::open_in_root(root, path.substr(0, slash), O_PATH | O_DIRECTORY);
  if (!directory.ok() || !TRY(is_in_mount_of(root, *directory, path))) return {};
  ignore(sys::make_symlink(target, *directory, path.substr(slash + 1)));
  return {};
}

Result<void> put_optional_file(const sys::Fd& root, const std::string& path,
                               std::string_view bytes) {
  auto place = open_place(root, path);
  if (!place.ok()) return is_closed(place.error()) ? Result<void>() : std::move(place).error();
  if (!TRY(is_in_mount_of(root, place->directory, path))) return {};
  if (TRY(sys::stat_entry(place->directory, place->name))) return {};
  auto written = write_new(*place, bytes, path);
  return !written.ok() && is_closed(written.error()) ? Result<void>() : written;
}

Result<std::optional<std::string>> find_file(const sys::Fd& root, const std::string& path,
                                             size_t max_bytes) {
  auto place = sys::open_in_root(root, path, O_PATH);
  if (!place.ok()) return std::optional<std::string>();
  struct stat info = TRY(sys::stat_fd(*place, path));
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) > max_bytes) {
    return std::optional<std::string>();
  }
  // We may have more rights than the container's user, and that user will be able to read the copy.
  bool for_all = (info.st_mode & S_IROTH) != 0;
  bool of_image = TRY(is_in_mount_of(root, *place, path)) || TRY(is_named(root, *place, path));
  if (!for_all || !of_image) return std::optional<std::string>();
  auto file = TRY(sys::open_regular(*place, path));
  if (!file) return std::optional<std::string>();
  return std::optional<std::string>(TRY(sys::read_all(*file, path, max_bytes)));
}

}  // namespace berth::gpu::cdi
