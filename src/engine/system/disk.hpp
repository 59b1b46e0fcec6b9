// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "engine/image/images.hpp"
#include "engine/inspect/container_query.hpp"
#include "engine/state/pruned.hpp"

/// The disk usage for `system df`, and the removal of unused objects.
namespace berth::engine {

/// The usage of one kind of object. Shared bytes count once.
struct KindUsage {
  uint64_t total = 0;
  uint64_t active = 0;  ///< used by containers; for containers: running ones
  uint64_t bytes = 0;
  uint64_t reclaimable = 0;  ///< bytes that a prune would free
};

struct ImageUsage {
  ImageSummary image;
  uint64_t shared_bytes = 0;  ///< of layers that other images use, too
  uint64_t blob_bytes = 0;    ///< of manifest, config and kept packed layers
  uint64_t containers = 0;
};

struct VolumeUsage {
  VolumeRecord volume;
  uint64_t bytes = 0;
  uint64_t containers = 0;
};

struct DiskUsage {
  KindUsage images;  ///< layers, kept packed layers, manifests and configs
  KindUsage containers, volumes;
  KindUsage build_cache;               ///< counted in layers
  std::vector<ImageUsage> each_image;  ///< newest first; each image once, with its first name
  std::vector<ListedContainer> each_container;
  std::vector<VolumeUsage> each_volume;
  uint64_t linked_bytes = 0;  ///< bytes saved by links between identical files of layers
};

/// Walks through all files of containers and volumes, and of layers that share files.  Errors: io.
Result<DiskUsage> disk_usage(const Context& context);

struct PruneOptions {
  Filters filters;          ///< until (not for volumes), label, label!; dangling for images
  int64_t now = 0;          ///< nanoseconds since 1970, for "until"
  bool all_images = false;  ///< also unused images that have a name
};

/// An image that was removed to free space.
struct ShrunkImage {
  std::string id;                       ///< "sha256:…"
  std::vector<std::string> references;  ///< in docker's form
  int64_t used_at = 0;                  ///< seconds since 1970
  uint64_t bytes = 0;                   ///< freed by the removal
};
struct Shrunk {
  std::vector<ShrunkImage> images;  ///< least recently used first
  std::vector<std::string> layers;  ///< "sha256:…" of the removed layers
  uint64_t before = 0;              ///< bytes of images before the removal; `after`: after it
  uint64_t after = 0;
};
struct ShrinkOptions {
  uint64_t most_bytes = 0;
  bool dry_run = false;  ///< only report
};

/// Removes images that no container uses, least recently used first, until the images use at most
/// `most_bytes`.  Errors: corrupt (a damaged store), io.
Result<Shrunk> shrink_images(const Context& context, const ShrinkOptions& options);

/// Removes containers that do not run.  Errors: usage (a filter), io.
Result<Pruned> prune_containers(const Context& context, const PruneOptions& options);

/// Removes volumes that no container mounts.  Errors: as above.
Result<Pruned> prune_volumes(const Context& context, const PruneOptions& options);

/// Removes named networks without running containers.  Errors: as above.
Result<Pruned> prune_networks(const Context& context, const PruneOptions& options);

/// Removes images without a name that no container uses, with `all_images` also those with a name.
/// Pruned::names are "untagged: REFERENCE" and "deleted: sha256:…".
/// Errors: as above.
Result<Pruned> prune_images(const Context& context, const PruneOptions& options);

}  // namespace berth::engine
