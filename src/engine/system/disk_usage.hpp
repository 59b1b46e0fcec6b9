// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "engine/container/volumes.hpp"
#include "engine/image/images.hpp"
#include "engine/inspect/container_query.hpp"

/// What `system df` asks.
namespace berth::engine {

/// How much of one kind of thing there is. Bytes of what several share count once.
struct KindUsage {
  uint64_t total = 0;
  uint64_t active = 0;  ///< that containers use; of containers: that run
  uint64_t bytes = 0;
  uint64_t reclaimable = 0;  ///< bytes that a prune would give back
};

struct ImageUsage {
  ImageSummary image;
  uint64_t shared_bytes = 0;  ///< of layers that other images have too
  uint64_t blob_bytes = 0;    ///< of its manifest, config and the packed layers that are kept
  uint64_t containers = 0;
};

struct VolumeUsage {
  VolumeRecord volume;
  uint64_t bytes = 0;
  uint64_t containers = 0;
};

struct DiskUsage {
  KindUsage images;  ///< layers, packed layers that are kept, manifests and configs
  KindUsage containers, volumes;
  KindUsage build_cache;               ///< counted in layers
  std::vector<ImageUsage> each_image;  ///< newest first, once, by its first name
  std::vector<ListedContainer> each_container;
  std::vector<VolumeUsage> each_volume;
  uint64_t linked_bytes = 0;  ///< that identical files of layers would take once more
};

/// Looks at all files of containers and volumes, and of layers that share files.  Errors: io.
Result<DiskUsage> disk_usage(const Context& context);

}  // namespace berth::engine
