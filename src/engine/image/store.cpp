// SPDX-License-Identifier: Apache-2.0
#include "engine/image/store.hpp"

#include "base/text.hpp"
#include "image/additional_store.hpp"

namespace berth::engine {
namespace {

image::LayerFlavor flavor_of(Identity identity) {
  image::LayerFlavor flavor;
  flavor.ownership =
      identity == Identity::single ? image::Ownership::single : image::Ownership::full;
  flavor.overlay_xattr =
      identity == Identity::root ? image::OverlayXattr::trusted : image::OverlayXattr::user;
  return flavor;
}

Result<void> check_store(const std::string& path) {
  TRY(image::AdditionalStore::check_owner(path));
  TRY(image::AdditionalStore::open(path));
  return {};
}

}  // namespace

Result<image::Store> open_store(const Context& context) {
  return image::Store::open(context.paths.root, flavor_of(context.identity),
                            context.paths.additional_stores);
}

Result<image::Store> open_own_store(const Context& context) {
  return image::Store::open(context.paths.root, flavor_of(context.identity));
}

std::vector<std::string> usable_stores(const Paths& paths, Log& log) {
  std::vector<std::string> usable;
  for (const std::string& path : paths.additional_stores) {
    if (path == paths.root) continue;
    auto checked = check_store(path);
    if (checked.ok()) {
      usable.push_back(path);
    } else {
      log.warn("additional store " + quote(path) + ": " + to_line(checked.error()) + ", ignoring");
    }
  }
  return usable;
}

Result<std::optional<image::Image>> find_present_image(const image::Store& store,
                                                       const std::string& name) {
  auto found = TRY(store.find_image_named(name));
  if (found) return found;
  return store.find_image(name);
}

Result<image::Image> get_image(const image::Store& store, std::string_view reference) {
  auto found = TRY(store.find_image(reference));
  if (!found)
    return make_error(Kind::not_found, "no such image: " + escape_controls(reference),
                      "berth images");
  return std::move(*found);
}

}  // namespace berth::engine
