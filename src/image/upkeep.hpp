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
  /// are an object of their own: the layers' names with a "+" between them.
  std::string path;
  uint64_t bytes = 0;
  std::set<Digest> images;  ///< their manifests
  bool held = false;        ///< a container or a running pull needs it
};
struct Usage {
  std::vector<ObjectUse> objects;
  uint64_t saved = 0;  ///< bytes that the links save
};

/// The sizes of layers and blobs, including files beside a layer's tree. The needs of a damaged
/// image are unknown.  Errors: io.
Result<Usage> measure_usage(const Store& store);

/// An empty file beside a layer's tree: it may share files with other layers.
inline constexpr const char* kLinkedFile = "linked";
/// The same while such links are made: the times of its directories may be too late.
inline constexpr const char* kLinkingFile = "linking";

/// Calls `act`, which must be brief, while no other process can begin to use, replace or remove
/// the layer `name`, a directory in layers/. If a container uses the layer, only returns its id; if
/// a delivery other than `own` does, only returns kBusyDelivery. Errors: not_found (it was
/// removed), io, those of `act`.
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
