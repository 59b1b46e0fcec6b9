// SPDX-License-Identifier: Apache-2.0
#include "sys/layer.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file.hpp"
#include "sys/mount.hpp"
#include "sys/trusted_file.hpp"

namespace berth::sys {
namespace {

constexpr uint32_t kBlock = 4096;
constexpr int kMaxTries = 64;  // somebody else may take the free device

Result<Fd> make_loop(const Fd& image) {
  Fd control = TRY(open_at(cwd(), "/dev/loop-control", O_RDWR));
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return errno_now().error("find a free loop device");
    std::string path = "/dev/loop" + std::to_string(number);
    Fd device = TRY(open_at(cwd(), path, O_RDONLY));
    struct loop_config config = {};
    config.fd = static_cast<uint32_t>(image.get());
    config.block_size = kBlock;
    config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno != EBUSY) return errno_now().error("put an image behind " + quoted(path));
  }
  return make_error(Kind::busy, "find a free loop device");
}

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

}  // namespace

Result<void> check_erofs() {
  auto context = fsopen("erofs");
  if (context.ok()) return {};
  return explain(std::move(context).error());
}

Result<Fd> mount_erofs(const Fd& image, Backing backing) {
  if (backing == Backing::file) return mount_from(image);
  Fd device = TRY(make_loop(image));
  return mount_from(device);
}

Result<std::optional<Fd>> mount_image(const std::string& path) {
  auto entry = TRY(stat_entry(cwd(), path));
  if (entry && S_ISDIR(entry->st_mode)) return std::optional<Fd>();
  // A device or a pipe in its place must not be waited for.
  Fd file = TRY(open_at(cwd(), path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  TRY(check_trusted(file, path));
  auto mounted = mount_either_way(file);
  if (mounted.ok()) return std::optional<Fd>(std::move(*mounted));
  return explain(std::move(mounted).error()).with_context("cannot mount layer " + quoted(path));
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
