// SPDX-License-Identifier: Apache-2.0
// The disk usage of a store, and changes to existing layers.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/store.hpp"

namespace berth::image {

/// The disk usage of a layer or blob, and what needs it.
struct ObjectUse {
  /// Below the root: "layers/…", "blobs/sha256/…". Files that several layers share by hard links
  /// are an object of their own; its path joins the layers' names with "+".
  std::string path;
  uint64_t bytes = 0;
  std::set<Digest> images;  ///< the manifests of the images that need it
  bool held = false;        ///< a container or a running pull needs it
};
struct Usage {
  std::vector<ObjectUse> objects;
  uint64_t saved = 0;  ///< bytes that the links save
};

/// The sizes of layers and blobs, including files next to a layer's tree. A damaged image is
/// skipped; if a container uses such an image, all objects count as held.  Errors: io.
Result<Usage> measure_usage(const Store& store);

/// An empty file next to a layer's tree: the layer may share files with other layers by hard links.
inline constexpr const char* kLinkedFile = "linked";
/// An empty file next to a layer's tree while such links are made: the layer's directories may have
/// later times than recorded.
inline constexpr const char* kLinkingFile = "linking";

/// Calls `act`, which must be brief, while no other process can begin to use, replace or remove
/// the layer `name`, a directory in layers/. If a container uses the layer, only returns the id of
/// the container. If a delivery other than `own` uses it, only returns kBusyDelivery. Errors:
/// not_found (it was removed), io, those of `act`.
Result<std::string> with_idle_layer(const Store& store, const std::string& name,
                                    const std::function<Result<void>()>& act,
                                    const Delivery* own = nullptr);
inline constexpr const char* kBusyDelivery = "a pull or save";

/// Replaces the layer `old`, a directory in layers/, by what `delivery` staged. If a container uses
/// the layer, changes nothing and returns the container's id.  Errors: not_found (it was removed),
/// io.
Result<std::string> replace_layer(const Store& store, const Delivery& delivery,
                                  const std::string& old, Staged directory,
                                  const LayerRecord& record);

}  // namespace berth::image
