// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "engine/state/pruned.hpp"

/// Removes unused objects.
namespace berth::engine {

struct PruneOptions {
  Filters filters;          ///< until (not for volumes), label, label!
  int64_t now = 0;          ///< nanoseconds since 1970, for "until"
  bool all_images = false;  ///< also unused images that have a name
};

/// An image that was removed to free space.
struct ShrunkImage {
  std::string id;                       ///< "sha256:…"
  std::vector<std::string> references;  ///< in docker's form
  int64_t used_at = 0;                  ///< seconds since 1970
  uint64_t bytes = 0;                   ///< freed with it
};
struct Shrunk {
  std::vector<ShrunkImage> images;  ///< least recently used first
  std::vector<std::string> layers;  ///< "sha256:…" of the removed ones
  uint64_t before = 0;              ///< bytes of images before; `after`: after the removal
  uint64_t after = 0;
};
struct ShrinkOptions {
  uint64_t most_bytes = 0;
  bool dry_run = false;  ///< only report
};

/// Removes images that no container uses, least recently used first, until images use at most
/// `most_bytes`.  Errors: corrupt (a damaged store), io.
Result<Shrunk> shrink_images(const Context& context, const ShrinkOptions& options);

/// Removes containers that do not run.  Errors: usage (a filter), io.
Result<Pruned> prune_containers(const Context& context, const PruneOptions& options);

/// Removes volumes that no container mounts.  Errors: as above.
Result<Pruned> prune_volumes(const Context& context, const PruneOptions& options);

/// Removes named networks without running containers.  Errors: as above.
Result<Pruned> prune_networks(const Context& context, const PruneOptions& options);

/// Removes unused images without a name; names are "untagged: REFERENCE" and "deleted: sha256:…".
/// Errors: as above.
Result<Pruned> prune_images(const Context& context, const PruneOptions& options);

}  // namespace berth::engine
