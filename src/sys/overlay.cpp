// SPDX-License-Identifier: Apache-2.0
#include "sys/overlay.hpp"

#include <fcntl.h>

#include <cerrno>

#include "sys/file.hpp"
#include "sys/mount.hpp"

namespace berth::sys {
namespace {

Result<Fd> mount_by_handles(const OverlayLayers& layers, const Fd& target) {
  Fd context = TRY(fsopen("overlay"));
  TRY(fsconfig_string(context, "source", "overlay"));
  for (const Fd& layer : layers.lower) {
    TRY(fsconfig_string(context, "lowerdir+", fd_path(layer)));
  }
  if (layers.upper) {
    TRY(fsconfig_string(context, "upperdir", fd_path(layers.upper)));
    TRY(fsconfig_string(context, "workdir", fd_path(layers.work)));
  }
  for (const std::string& option : layers.options) TRY(fsconfig_option(context, option));
  TRY(fsconfig_create(context));
  Fd mount = TRY(fsmount(context, 0));
  TRY(move_mount_to_fd(mount, target, "/"));
  return mount;
}

// COMPAT(6.5): delete when that is our baseline. One string for all layers, at most a page.
Result<void> mount_by_string(const OverlayLayers& layers, const Fd& target) {
  std::string data = "lowerdir=";
  for (size_t i = 0; i < layers.lower.size(); ++i) {
    if (i > 0) data += ':';
    data += fd_path(layers.lower[i]);
  }
  if (layers.upper) {
    data += ",upperdir=" + fd_path(layers.upper) + ",workdir=" + fd_path(layers.work);
  }
  for (const std::string& option : layers.options) data += "," + option;
  return mount("overlay", fd_path(target), "overlay", 0, data);
}

}  // namespace

Result<Fd> mount_overlay(const OverlayLayers& layers, const std::string& target) {
  Fd place = TRY(open_at(cwd(), target, O_PATH | O_DIRECTORY));
  auto mounted = mount_by_handles(layers, place);
  if (mounted.ok()) return open_at(*mounted, ".", O_RDONLY | O_DIRECTORY);
  bool old_kernel = mounted.error().sys_errno == EINVAL || mounted.error().sys_errno == ENOSYS;
  if (!old_kernel || !mount_by_string(layers, place).ok()) return std::move(mounted).error();
  return open_at(cwd(), target, O_RDONLY | O_DIRECTORY);
}

}  // namespace berth::sys
