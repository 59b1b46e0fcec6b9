// SPDX-License-Identifier: Apache-2.0
// What a store takes of the disk, and changes to layers that are there.
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

/// How much disk a layer or blob takes, and what needs it.
struct ObjectUse {
  /// Below the root: "layers/…", "blobs/sha256/…". What several layers share by hard links is an
  /// object of its own: their names with a "+" between them.
  std::string path;
  uint64_t bytes = 0;
  std::set<Digest> images;  ///< their manifests
  bool held = false;        ///< a container needs it, or a pull that runs
};
struct Usage {
  std::vector<ObjectUse> objects;
  uint64_t saved = 0;  ///< bytes that the disk would have to hold without those links
};

/// What layers and blobs take, files beside a layer's tree among it. Of an image that is damaged
/// nobody knows what it needs.  Errors: io.
Result<Usage> measure_usage(const Store& store);

/// An empty file beside a layer's tree: some of its files may be those of other layers, too.
inline constexpr const char* kLinkedFile = "linked";
/// The same while such links are made: times of its directories may be later than they should be.
inline constexpr const char* kLinkingFile = "linking";

/// Calls `act` while nobody can begin to use, replace or remove the layer `name`, a directory in
/// layers/; for moments. Not when a container uses it, whose id is then given, or a delivery other
/// than `own`, of which kBusyDelivery is told.
/// Errors: not_found (it is gone), io, those of `act`.
Result<std::string> with_idle_layer(const Store& store, const std::string& name,
                                    const std::function<Result<void>()>& act,
                                    const Delivery* own = nullptr);
inline constexpr const char* kBusyDelivery = "a pull or save";

/// Puts what was staged by `delivery` in the place of the layer `old`, a directory in layers/,
/// which goes. Gives the container that uses it: it then stays as it is.  Errors: not_found (it has
/// been removed), io.
Result<std::string> replace_layer(const Store& store, const Delivery& delivery,
                                  const std::string& old, Staged directory,
                                  const LayerRecord& record);

}  // namespace berth::image
