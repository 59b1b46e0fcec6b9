// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/state/pruned.hpp"

/// What buildah keeps of `build` and `bake` from one time to the next: the layers of base images
/// and of steps that need not be done again. No image of the store is made of them.
namespace berth::engine {

struct BuildCache {
  std::vector<std::string> layers;  ///< their ids, sorted
  uint64_t bytes = 0;
  bool in_use = false;  ///< a build runs
};

/// Errors: io.
Result<BuildCache> look_at_build_cache(const Context& context);

/// Removes all of it; names are ids of layers.  Errors: busy (a build runs), io.
Result<Pruned> prune_build_cache(const Context& context);

}  // namespace berth::engine
