// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/state/pruned.hpp"

/// buildah's cache for `build` and `bake`: the layers of base images and of completed steps. Images
/// in the store do not depend on it.
namespace berth::engine {

struct BuildCache {
  std::vector<std::string> layers;  ///< ids, sorted
  uint64_t bytes = 0;
  bool in_use = false;  ///< a build runs
};

/// Errors: io.
Result<BuildCache> look_at_build_cache(const Context& context);

/// Removes the whole cache. In the result, `names` are ids of layers.  Errors: busy (a build runs),
/// io.
Result<Pruned> prune_build_cache(const Context& context);

}  // namespace berth::engine
