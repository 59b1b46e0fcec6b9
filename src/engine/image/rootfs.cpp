// SPDX-License-Identifier: Apache-2.0
#include "engine/image/rootfs.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/table.hpp"

namespace berth::engine {
namespace {

bool is_in(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && path.substr(directory.size()).starts_with('/');
}

bool is_provided(const oci::Spec& spec, std::string_view path) {
  return std::ranges::any_of(spec.mounts, [&](const oci::Mount& mount) {
    return mount.destination != "/" && is_in(path, mount.destination);
  });
}

Result<void> check_place(const oci::Spec& spec, const LayerView& root, const std::string& path) {
  if (path == "/" || is_provided(spec, path)) return {};
  if (TRY(root.look_up(path)) != LayerView::Type::absent) return {};
  return make_error(Kind::not_found,
                    quote(path) +
                        " does not exist in the root file system, which is a directory of the "
                        "host: nothing is created there",
                    "a place that exists");
}

}  // namespace

image::Image no_image() {
  image::Image image;
  image.config.config.working_dir = "/";
  return image;
}

Result<bool> is_host_root(const std::string& path) {
  auto directory = TRY_CTX(sys::open_at(sys::cwd(), path, O_PATH), "cannot use it as the root");
  struct stat info = TRY(sys::stat_fd(directory, path));
  if (!S_ISDIR(info.st_mode)) {
    return make_error(Kind::usage, "root file system " + quote(path) + " is not a directory");
  }
  auto root = TRY(sys::open_at(sys::cwd(), "/", O_PATH));
  struct stat host = TRY(sys::stat_fd(root, "/"));
  return info.st_dev == host.st_dev && info.st_ino == host.st_ino;
}

Result<void> check_places(const oci::Spec& spec, const LayerView& root) {
  for (const oci::Mount& mount : spec.mounts) TRY(check_place(spec, root, mount.destination));
  for (const oci::Device& device : spec.linux_.devices) TRY(check_place(spec, root, device.path));
  for (const auto& [key, value] : spec.annotations) {
    if (!key.starts_with(oci::kLinkAnnotation)) continue;
    TRY(check_place(spec, root, key.substr(oci::kLinkAnnotation.size())));
  }
  return {};
}

Result<std::vector<std::string>> mounts_below(const std::string& path, const oci::Spec& spec) {
  std::string prefix = path == "/" ? "" : path;
  std::vector<std::string> out;
  for (const sys::MountEntry& entry : TRY(sys::mount_table())) {
    if (!is_in(entry.point, prefix) || entry.point == "/") continue;
    std::string inside = entry.point.substr(prefix.size());
    bool hidden = is_provided(spec, inside) ||
                  std::ranges::any_of(
                      spec.mounts, [&](const auto& mount) { return mount.destination == inside; });
    if (!hidden && std::ranges::find(out, inside) == out.end()) out.push_back(inside);
  }
  return out;
}

}  // namespace berth::engine
