// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "engine/filter.hpp"

/// Removing what nothing needs any more.
namespace berth::engine {

struct PruneOptions {
  Filters filters;          ///< until (no volumes), label, label!
  int64_t now = 0;          ///< nanoseconds since 1970, for "until"
  bool all_images = false;  ///< also those that have a name and that no container uses
};

struct Pruned {
  std::vector<std::string> names;  ///< in the order of their removal
  uint64_t bytes = 0;              ///< that the disk has back
};

/// Removes containers that do not run.  Errors: usage (a filter), io.
Result<Pruned> prune_containers(const Context& context, const PruneOptions& options);

/// Removes volumes that no container mounts.  Errors: as above.
Result<Pruned> prune_volumes(const Context& context, const PruneOptions& options);

/// Removes images without a name that no container uses; names are "untagged: REFERENCE" and
/// "deleted: sha256:…".  Errors: as above.
Result<Pruned> prune_images(const Context& context, const PruneOptions& options);

}  // namespace berth::engine
