// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/layer.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/fuse.hpp"
#include "sys/mount/image_file.hpp"
#include "sys/mount/mount.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::sys {
namespace {

constexpr int kMaxLoopTries = 64;  // another process may take the free device

/// Attaches a part of the file `image` to a read-only loop device, which the kernel removes when
/// the last handle is closed and the last mount has ended. An extent of size 0 means the rest of
/// the file. The size of the device is a multiple of 512.
/// Errors: not_found (no loop devices here), denied, busy (none is free), io.  loop(4)
Result<Fd> make_loop(const Fd& image, const Extent& part, uint32_t block_size) {
  Fd control = TRY(open_at(cwd(), "/dev/loop-control", O_RDWR));
  for (int attempt = 0; attempt < kMaxLoopTries; ++attempt) {
    int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return errno_now().error("find a free loop device");
    std::string path = "/dev/loop" + std::to_string(number);
    Fd device = TRY(open_at(cwd(), path, O_RDONLY));
    struct loop_config config = {};
    config.fd = static_cast<uint32_t>(image.get());
    config.block_size = block_size;
    config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
    config.info.lo_offset = part.offset;
    config.info.lo_sizelimit = part.size;
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno != EBUSY) return errno_now().error("put an image behind " + quote(path));
  }
  return make_error(Kind::busy, "find a free loop device");
}

constexpr uint32_t kSector =
    512;  // so that sizes that are only a multiple of 512 are visible completely

FuseServer squashfuse(const Extent& part) {
  FuseServer server;
  // The multi-threaded program is preferred, if it is installed.
  server.programs = {"/usr/bin/squashfuse_ll", "/usr/local/bin/squashfuse_ll",
                     "/usr/bin/squashfuse", "/usr/local/bin/squashfuse"};
  server.package = "squashfuse";
  if (part.offset > 0) server.options = {"-o", "offset=" + std::to_string(part.offset)};
  return server;
}

Result<Fd> mount_from(const Fd& source, const std::string& type) {
  Fd context = TRY(fsopen(type));
  TRY(fsconfig_string(context, "source", fd_path(source)));
  TRY(fsconfig_flag(context, "ro"));  // without this the kernel refuses a read-only device
  TRY(fsconfig_create(context));
  return fsmount(context, MOUNT_ATTR_RDONLY);
}

Result<Fd> mount_by_loop(const Fd& image, const Extent& part) {
  Fd device = TRY(make_loop(image, part, kSector));
  return mount_from(device, "squashfs");
}

// Whether this kernel lacks the file system, or this machine lacks loop devices.
bool is_missing(const Error& error) {
  return error.sys_errno == ENODEV || error.sys_errno == ENOENT || error.sys_errno == ENXIO;
}

// Root of the machine may mount, and its overlay reads "trusted.overlay." marks.
bool is_root_of_machine() {
  return effective_uid() == 0 && in_initial_user_namespace();
}

/// Mounts the squashfs in a part of the file `image`, read-only and detached. For root of the
/// machine the kernel mounts and parses it, so `image` must belong to root and other users may not
/// have write permission; if the kernel lacks squashfs or loop devices, FUSE is used. For other
/// users FUSE is used, by Debian's squashfuse.
/// Errors: denied, not_found (no squashfuse), corrupt, io; those of mount_fuse().
Result<Fd> mount_squashfs(const Fd& image, const Extent& part, const std::string& path) {
  if (!is_root_of_machine()) return mount_fuse(squashfuse(part), image);
  auto trusted = check_trusted(image, path);
  if (!trusted.ok()) {
    Error error = std::move(trusted).error();
    error.hint += ", or berth import " + path;
    return error;
  }
  auto mounted = mount_by_loop(image, part);
  if (mounted.ok() || !is_missing(mounted.error())) return mounted;
  return mount_fuse(squashfuse(part), image);
}

constexpr uint32_t kBlock = 4096;

// A kernel that only supports block devices returns ENOTBLK.
bool lacks_file_backing(const Error& error) {
  return error.sys_errno == ENOTBLK || error.sys_errno == EINVAL;
}

/// Mounts the EROFS image `image`, open for reading, read-only and detached: directly from the file
/// (since Linux 6.12), else through a loop device, which is removed when the mount ends. Only for
/// images that Berth has written: the kernel parses them. Errors: unsupported (not on this kernel),
/// denied (the caller is not root of the initial user namespace), corrupt (not an EROFS image), io.
/// erofs(5); loop(4)
Result<Fd> mount_erofs(const Fd& image) {
  auto mounted = mount_from(image, "erofs");
  if (mounted.ok() || !lacks_file_backing(mounted.error())) return mounted;
  Fd device = TRY(make_loop(image, {}, kBlock));
  return mount_from(device, "erofs");
}

Error explain(Error error) {
  bool damaged = error.kind == Kind::corrupt || error.sys_errno == EINVAL;
  if (damaged) error.hint = "it is damaged: berth rmi, and pull the image again";
  return error;
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
  // Only a program without rights parses the image, so the owner of the file does not matter.
  if (!is_root_of_machine()) return mount_through_fuse(image);
  TRY(check_trusted(image, path));
  auto mounted = mount_erofs(image);
  if (mounted.ok() || !is_missing(mounted.error())) return mounted;
  return mount_through_fuse(image);
}

Result<Fd> mount_file(const Fd& file, const std::string& path) {
  auto part = TRY(identify_image(file, path));
  if (part && part->format == ImageFormat::squashfs) {
    return mount_squashfs(file, part->extent, path);
  }
  // A file of unknown format is treated as EROFS: it is a damaged layer of ours.
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

Result<std::optional<Fd>> mount_image(const std::string& path) {
  auto entry = TRY(stat_entry(cwd(), path));
  if (entry && S_ISDIR(entry->st_mode)) return std::optional<Fd>();
  // The open must not block if a device or a FIFO is in the place of the file.
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
