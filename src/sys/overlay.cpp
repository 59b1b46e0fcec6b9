// SPDX-License-Identifier: Apache-2.0
#include "sys/overlay.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "sys/file.hpp"
#include "sys/mount.hpp"

namespace berth::sys {
namespace {

using Lower = std::vector<Layer>;

Result<Fd> mount_by_handles(const Lower& lower, const OverlayTop& top, const Fd& target) {
  Fd context = TRY(fsopen("overlay"));
  TRY(fsconfig_string(context, "source", "overlay"));
  for (const Layer& layer : lower) {
    TRY(fsconfig_string(context, "lowerdir+", fd_path(layer.root)));
  }
  if (top.upper) {
    TRY(fsconfig_string(context, "upperdir", fd_path(top.upper)));
    TRY(fsconfig_string(context, "workdir", fd_path(top.work)));
  }
  for (const std::string& option : top.options) TRY(fsconfig_option(context, option));
  TRY(fsconfig_create(context));
  Fd mount = TRY(fsmount(context, static_cast<unsigned>(top.attributes)));
  TRY(move_mount_to_fd(mount, target, "/"));
  return mount;
}

// COMPAT(6.5): delete when that is our baseline. One string for all layers, at most a page.
Result<void> mount_by_string(const Lower& lower, const OverlayTop& top, const Fd& target) {
  std::string data = "lowerdir=";
  for (size_t i = 0; i < lower.size(); ++i) {
    if (i > 0) data += ':';
    data += fd_path(lower[i].root);
  }
  if (top.upper) {
    data += ",upperdir=" + fd_path(top.upper) + ",workdir=" + fd_path(top.work);
  }
  for (const std::string& option : top.options) data += "," + option;
  return mount("overlay", fd_path(target), "overlay", top.flags, data);
}

// COMPAT(6.15): delete when that is our baseline. They lie on top of each other, and their handles
// stay what they were.
Result<void> attach_layers(const Lower& lower, const Fd& target) {
  for (const Layer& layer : lower) {
    if (layer.detached) TRY(move_mount_to_fd(layer.root, target, "a layer"));
  }
  return {};
}

bool has_detached(const Lower& lower) {
  return std::any_of(lower.begin(), lower.end(), [](const Layer& layer) { return layer.detached; });
}

}  // namespace

Result<Fd> mount_overlay(const Lower& lower, const OverlayTop& top, const std::string& target) {
  Fd place = TRY(open_at(cwd(), target, O_PATH | O_DIRECTORY));
  auto mounted = mount_by_handles(lower, top, place);
  if (mounted.ok()) return mounted;
  // An older kernel refuses "lowerdir+", at once or only when the file system is made, and layers
  // that are mounted nowhere. When the old ways fail too, the first reason is the true one.
  bool old_kernel = mounted.error().sys_errno == EINVAL || mounted.error().sys_errno == ENOSYS;
  if (!old_kernel) return mounted;
  if (has_detached(lower)) {
    if (!attach_layers(lower, place).ok()) return mounted;
    auto again = mount_by_handles(lower, top, place);
    if (again.ok()) return again;
  }
  if (!mount_by_string(lower, top, place).ok()) return mounted;
  return open_at(cwd(), target, O_PATH | O_DIRECTORY);
}

}  // namespace berth::sys
