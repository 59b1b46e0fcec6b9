// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/squashfs.hpp"

#include <linux/mount.h>

#include <cerrno>

#include "sys/file/file.hpp"
#include "sys/mount/fuse.hpp"
#include "sys/mount/loop.hpp"
#include "sys/mount/mount.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::sys {
namespace {

constexpr uint32_t kSector = 512;  // so that sizes that are no multiple of more are visible whole

FuseServer squashfuse(const Extent& part) {
  FuseServer server;
  // The multi-threaded one if it is installed.
  server.programs = {"/usr/bin/squashfuse_ll", "/usr/local/bin/squashfuse_ll",
                     "/usr/bin/squashfuse", "/usr/local/bin/squashfuse"};
  server.package = "squashfuse";
  if (part.offset > 0) server.options = {"-o", "offset=" + std::to_string(part.offset)};
  return server;
}

Result<Fd> mount_by_kernel(const Fd& image, const Extent& part) {
  Fd context = TRY(fsopen("squashfs"));
  Fd device = TRY(make_loop(image, part, kSector));
  TRY(fsconfig_string(context, "source", fd_path(device)));
  TRY(fsconfig_flag(context, "ro"));  // else a read-only device is refused
  TRY(fsconfig_create(context));
  return fsmount(context, MOUNT_ATTR_RDONLY);
}

// No squashfs in this kernel, no loop device in this machine.
bool is_missing_module(const Error& error) {
  return error.sys_errno == ENODEV || error.sys_errno == ENOENT || error.sys_errno == ENXIO;
}

}  // namespace

Result<Fd> mount_squashfs(const Fd& image, const Extent& part, const std::string& path) {
  bool root = effective_uid() == 0 && in_initial_user_namespace();
  if (!root) return mount_fuse(squashfuse(part), image);
  auto trusted = check_trusted(image, path);
  if (!trusted.ok()) {
    Error error = std::move(trusted).error();
    error.hint += ", or berth import " + path;
    return error;
  }
  auto mounted = mount_by_kernel(image, part);
  if (mounted.ok() || !is_missing_module(mounted.error())) return mounted;
  return mount_fuse(squashfuse(part), image);
}

}  // namespace berth::sys
