// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/image_mounts.hpp"

#include <algorithm>

#include "engine/image/store.hpp"
#include "engine/request/volume.hpp"

namespace berth::engine {
namespace {

Result<image::Image> get_image(const image::Store& store, const ImageMount& mount) {
  return store.get_image(mount.id.empty() ? mount.source : mount.id);
}

/// The layers of an image mount, highest first.
Result<std::vector<std::string>> layers_of(const image::Store& store, const ImageMount& mount) {
  if (mount.is_file) return std::vector<std::string>{mount.source};
  image::Image image = TRY(get_image(store, mount));
  std::vector<std::string> layers = image.layer_directories();
  std::ranges::reverse(layers);
  if (!layers.empty()) return layers;
  return make_error(Kind::usage, "it has no files");
}

Result<oci::Mount> make_mount(const Context& context, const image::Store& store,
                              const ImageMount& mount, const LayerView& view) {
  if (TRY(view.look_up(mount.destination)) == LayerView::Type::other) {
    return make_error(Kind::usage, "the path in the image is not a directory");
  }
  oci::Mount made;
  made.destination = mount.destination;
  made.type = "overlay";
  made.source = "overlay";
  made.options = {"ro", "nosuid", "nodev"};
  for (const std::string& layer : TRY(layers_of(store, mount))) {
    made.options.push_back("lowerdir+=" + layer);
  }
  if (context.identity != Identity::root) made.options.emplace_back("userxattr");
  return made;
}

}  // namespace

Result<std::vector<std::optional<image::Image>>> find_images(
    const image::Store& store, const std::vector<ImageMount>& mounts) {
  std::vector<std::optional<image::Image>> images;
  for (const ImageMount& mount : mounts) {
    images.emplace_back();
    if (!mount.is_file) images.back() = TRY_CTX(get_image(store, mount), cannot_mount(mount));
  }
  return images;
}

Result<std::vector<oci::Mount>> make_image_mounts(const Context& context, const RunRequest& request,
                                                  const LayerView& view) {
  std::vector<oci::Mount> mounts;
  if (request.image_mounts.empty()) return mounts;
  image::Store store = TRY(open_store(context));
  for (const ImageMount& mount : request.image_mounts) {
    mounts.push_back(TRY_CTX(make_mount(context, store, mount, view), cannot_mount(mount)));
  }
  return mounts;
}

}  // namespace berth::engine
