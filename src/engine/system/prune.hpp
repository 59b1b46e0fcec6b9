// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "engine/state/pruned.hpp"

/// Removing what nothing needs any more.
namespace berth::engine {

struct PruneOptions {
  Filters filters;          ///< until (no volumes), label, label!
  int64_t now = 0;          ///< nanoseconds since 1970, for "until"
  bool all_images = false;  ///< also those that have a name and that no container uses
};

/// An image that made room.
struct ShrunkImage {
  std::string id;                       ///< "sha256:…"
  std::vector<std::string> references;  ///< as docker shows them
  int64_t used_at = 0;                  ///< seconds since 1970
  uint64_t bytes = 0;                   ///< that went with it
};
struct Shrunk {
  std::vector<ShrunkImage> images;  ///< least recently used first
  std::vector<std::string> layers;  ///< "sha256:…" of those that are gone
  uint64_t before = 0;              ///< bytes of images before, and after
  uint64_t after = 0;
};
struct ShrinkOptions {
  uint64_t most_bytes = 0;
  bool dry_run = false;  ///< only tell
};

/// Removes images that no container uses, the least recently used first, until images take at
/// most so much.  Errors: corrupt (a damaged store), io.
Result<Shrunk> shrink_images(const Context& context, const ShrinkOptions& options);

/// Removes containers that do not run.  Errors: usage (a filter), io.
Result<Pruned> prune_containers(const Context& context, const PruneOptions& options);

/// Removes volumes that no container mounts.  Errors: as above.
Result<Pruned> prune_volumes(const Context& context, const PruneOptions& options);

/// Removes networks with names in which no container runs.  Errors: as above.
Result<Pruned> prune_networks(const Context& context, const PruneOptions& options);

/// Removes images without a name that no container uses; names are "untagged: REFERENCE" and
/// "deleted: sha256:…".  Errors: as above.
Result<Pruned> prune_images(const Context& context, const PruneOptions& options);

}  // namespace berth::engine
