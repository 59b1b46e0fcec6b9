// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "engine/container/volumes.hpp"
#include "engine/image/images.hpp"
#include "engine/inspect/container_query.hpp"

/// The query of `system df`.
namespace berth::engine {

/// The usage of one kind of object. Shared bytes count once.
struct KindUsage {
  uint64_t total = 0;
  uint64_t active = 0;  ///< used by containers; for containers: running
  uint64_t bytes = 0;
  uint64_t reclaimable = 0;  ///< bytes that a prune would free
};

struct ImageUsage {
  ImageSummary image;
  uint64_t shared_bytes = 0;  ///< of layers that other images share
  uint64_t blob_bytes = 0;    ///< of its manifest, config and kept packed layers
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
  std::vector<ImageUsage> each_image;  ///< newest first, without duplicates, by its first name
  std::vector<ListedContainer> each_container;
  std::vector<VolumeUsage> each_volume;
  uint64_t linked_bytes = 0;  ///< bytes saved by links between identical files of layers
};

/// Walks through all files of containers and volumes, and of layers that share files.  Errors: io.
Result<DiskUsage> disk_usage(const Context& context);

}  // namespace berth::engine
