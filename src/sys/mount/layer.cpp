// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/layer.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/fuse.hpp"
#include "sys/mount/image_file.hpp"
#include "sys/mount/loop.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/squashfs.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/trusted_file.hpp"

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

// A kernel that only supports block devices returns ENOTBLK.
bool lacks_file_backing(const Error& error) {
  return error.sys_errno == ENOTBLK || error.sys_errno == EINVAL;
}

Result<Fd> mount_either_way(const Fd& image) {
  auto mounted = mount_erofs(image, Backing::file);
  if (mounted.ok() || !lacks_file_backing(mounted.error())) return mounted;
  return mount_erofs(image, Backing::loop);
}

// No EROFS in this kernel, no loop device in this machine.
bool is_missing(const Error& error) {
  return error.sys_errno == ENODEV || error.sys_errno == ENOENT || error.sys_errno == ENXIO;
}

Error explain(Error error) {
  bool damaged = error.kind == Kind::corrupt || error.sys_errno == EINVAL;
  if (damaged) error.hint = "it is damaged: berth rmi, and pull the image again";
  return error;
}

// Root of the machine may mount, and its overlay reads "trusted.overlay." marks.
bool is_root_of_machine() {
  return effective_uid() == 0 && in_initial_user_namespace();
}

Result<FuseServer> erofs_server() {
  FuseServer server;
  std::string directory = TRY(program_directory());
  server.programs = {TRY(own_program(directory, "berth-erofs", "BERTH_EROFS_FUSE"))};
  if (!is_root_of_machine()) server.options = {"-o", "userxattr"};
  return server;
}

Result<Fd> mount_through_fuse(const Fd& image) {
  FuseServer server = TRY(erofs_server());
  return mount_fuse(server, image);
}

Result<Fd> mount_any_way(const Fd& image, const std::string& path) {
  // Its bytes only reach a program without rights.
  if (!is_root_of_machine()) return mount_through_fuse(image);
  TRY(check_trusted(image, path));
  auto mounted = mount_either_way(image);
  if (mounted.ok() || !is_missing(mounted.error())) return mounted;
  return mount_through_fuse(image);
}

Result<Fd> mount_file(const Fd& file, const std::string& path) {
  auto part = TRY(identify_image(file, path));
  if (part && part->format == ImageFormat::squashfs) {
    return mount_squashfs(file, part->extent, path);
  }
  // A file of no known format is a damaged layer of ours.
  auto mounted = mount_any_way(file, path);
  return mounted.ok() ? std::move(mounted) : explain(std::move(mounted).error());
}

}  // namespace

Result<ErofsWay> check_erofs() {
  if (is_root_of_machine()) {
    auto context = fsopen("erofs");
    if (context.ok()) return ErofsWay::kernel;
    if (!is_missing(context.error())) return std::move(context).error();
  }
  FuseServer server = TRY(erofs_server());
  auto checked = check_fuse(server);
  if (checked.ok()) return ErofsWay::fuse;
  Error error = std::move(checked).error();
  error.hint += (error.hint.empty() ? "" : ", or ") + std::string("--layer-format directory");
  return error;
}

Result<Fd> mount_erofs(const Fd& image, Backing backing) {
  if (backing == Backing::file) return mount_from(image);
  Fd device = TRY(make_loop(image, {}, kBlock));
  return mount_from(device);
}

Result<std::optional<Fd>> mount_image(const std::string& path) {
  auto entry = TRY(stat_entry(cwd(), path));
  if (entry && S_ISDIR(entry->st_mode)) return std::optional<Fd>();
  // The open must not block on a device or a pipe in its place.
  Fd file = TRY(open_at(cwd(), path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  auto mounted = mount_file(file, path);
  if (mounted.ok()) return std::optional<Fd>(std::move(*mounted));
  return std::move(mounted).error().with_context("cannot mount layer " + quote(path));
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
