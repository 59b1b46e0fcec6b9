// SPDX-License-Identifier: Apache-2.0
#include "sys/layer.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file.hpp"
#include "sys/image_file.hpp"
#include "sys/loop.hpp"
#include "sys/mount.hpp"
#include "sys/squashfs.hpp"
#include "sys/trusted_file.hpp"

namespace berth::sys {
namespace {

constexpr uint32_t kBlock = 4096;

Result<Fd> mount_from(const Fd& source) {
  Fd context = TRY(fsopen("erofs"));
  TRY(fsconfig_string(context, "source", fd_path(source)));
  TRY(fsconfig_flag(context, "ro"));  // else a read-only device is refused
  TRY(fsconfig_create(context));
  return fsmount(context, MOUNT_ATTR_RDONLY);
}

// A kernel that knows only block devices says ENOTBLK.
bool lacks_file_backing(const Error& error) {
  return error.sys_errno == ENOTBLK || error.sys_errno == EINVAL;
}

Result<Fd> mount_either_way(const Fd& image) {
  auto mounted = mount_erofs(image, Backing::file);
  if (mounted.ok() || !lacks_file_backing(mounted.error())) return mounted;
  return mount_erofs(image, Backing::loop);
}

Error explain(Error error) {
  if (error.kind == Kind::denied) error.hint = "root alone can mount it: --layer-format directory";
  if (error.sys_errno == ENODEV) error.hint = "modprobe erofs, or --layer-format directory";
  if (error.sys_errno == EINVAL) error.hint = "it is damaged: berth rmi, and pull the image again";
  return error;
}

Result<Fd> mount_file(const Fd& file, const std::string& path) {
  auto part = TRY(identify_image(file, path));
  if (part && part->format == ImageFormat::squashfs) {
    return mount_squashfs(file, part->extent, path);
  }
  // What is nothing of all is a damaged layer of ours.
  TRY(check_trusted(file, path));
  auto mounted = mount_either_way(file);
  return mounted.ok() ? std::move(mounted) : explain(std::move(mounted).error());
}

}  // namespace

Result<void> check_erofs() {
  auto context = fsopen("erofs");
  if (context.ok()) return {};
  return explain(std::move(context).error());
}

Result<Fd> mount_erofs(const Fd& image, Backing backing) {
  if (backing == Backing::file) return mount_from(image);
  Fd device = TRY(make_loop(image, {}, kBlock));
  return mount_from(device);
}

Result<std::optional<Fd>> mount_image(const std::string& path) {
  auto entry = TRY(stat_entry(cwd(), path));
  if (entry && S_ISDIR(entry->st_mode)) return std::optional<Fd>();
  // A device or a pipe in its place must not be waited for.
  Fd file = TRY(open_at(cwd(), path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  auto mounted = mount_file(file, path);
  if (mounted.ok()) return std::optional<Fd>(std::move(*mounted));
  return std::move(mounted).error().with_context("cannot mount layer " + quoted(path));
}

Result<Layer> open_layer(const std::string& path) {
  auto directory = open_at(cwd(), path, O_RDONLY | O_DIRECTORY);
  if (directory.ok()) return Layer{std::move(*directory), false};
  if (directory.error().sys_errno != ENOTDIR) return std::move(directory).error();
  auto image = TRY(mount_image(path));
  if (!image) return std::move(directory).error();
  return Layer{std::move(*image), true};
}

}  // namespace berth::sys
