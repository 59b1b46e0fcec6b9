// SPDX-License-Identifier: Apache-2.0
#include "engine/store.hpp"

namespace berth::engine {

Result<image::Store> open_store(const Context& context) {
  image::LayerFlavor flavor;
  flavor.ownership =
      context.identity == Identity::single ? image::Ownership::single : image::Ownership::full;
  flavor.overlay_xattr =
      context.identity == Identity::root ? image::OverlayXattr::trusted : image::OverlayXattr::user;
  return image::Store::open(context.paths.root, flavor);
}

}  // namespace berth::engine
