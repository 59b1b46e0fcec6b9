// SPDX-License-Identifier: Apache-2.0
#include "engine/container/rootfs_setup.hpp"

#include <fcntl.h>

#include <algorithm>

#include "engine/image/layer_view.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kLowerDirOption = "lowerdir+=";
constexpr const char* kPart = "root.part";  ///< an unfinished copy

std::string numbered(size_t index) {
  std::string digits = std::to_string(index);
  digits.insert(0, 3 - std::min<size_t>(3, digits.size()), '0');
  return std::string(oci::kCopiedLayerAnnotation) + digits;
}

// A hard link shares the file itself with the store. So links are made only for containers that
// cannot get around a read-only root.
Sharing sharing_of(const RunRequest& request) {
  const auto& added = request.security.cap_add;
  bool more = request.security.privileged || !added.empty();
  return request.read_only && !more ? Sharing::files : Sharing::names;
}

}  // namespace

void use_rootfs_driver(const RunRequest& request, const std::string& directory, oci::Spec& spec) {
  RootfsDriver driver = request.rootfs_driver.value_or(RootfsDriver::overlay);
  auto root = std::ranges::find_if(spec.mounts, is_root);
  if (driver == RootfsDriver::overlay || root == spec.mounts.end()) return;
  if (driver == RootfsDriver::fuse_overlayfs) {
    root->type = root->source = "fuse-overlayfs";
    std::erase(root->options, "userxattr");
    return;
  }
  size_t count = 0;
  for (const std::string& option : root->options) {
    if (!option.starts_with(kLowerDirOption)) continue;
    spec.annotations[numbered(count++)] = option.substr(kLowerDirOption.size());
  }
  spec.mounts.erase(root);
  spec.root.path = directory + "/" + std::string(kCopyDirectory);
}

Result<void> provide_root_copy(const RunRequest& request, const oci::Spec& spec,
                               const ContainerDirectory& directory) {
  std::vector<std::string> layers = copied_layers(spec);
  const std::string name(kCopyDirectory);
  if (layers.empty() || TRY(sys::stat_entry(directory.fd(), name))) return {};
  const char* context = "cannot copy the image for the container";
  TRY_CTX(sys::remove_tree(directory.fd(), kPart), context);
  TRY_CTX(sys::make_directory(directory.fd(), kPart, 0700), context);
  sys::Fd part =
      TRY_CTX(sys::open_at(directory.fd(), kPart, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), context);
  LayerView view = TRY_CTX(LayerView::open(layers), context);
  TRY_CTX(view.copy_tree("/", part, sharing_of(request)), context);
  return sys::rename(directory.fd(), kPart, directory.fd(), name);
}

}  // namespace berth::engine
