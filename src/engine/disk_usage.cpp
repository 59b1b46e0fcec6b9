// SPDX-License-Identifier: Apache-2.0
#include "engine/disk_usage.hpp"

#include <map>
#include <set>

#include "engine/build_cache.hpp"
#include "engine/store.hpp"
#include "engine/tree_size.hpp"

namespace berth::engine {
namespace {

/// A layer of the store, and who has it.
struct LayerUse {
  uint64_t bytes = 0;
  std::set<std::string> images;
  bool active = false;
};

Result<void> add_images(const Context& context, const std::map<std::string, uint64_t>& containers,
                        DiskUsage& usage) {
  image::Store store = TRY(open_own_store(context));
  std::vector<std::string> damaged;
  std::vector<image::Image> images = TRY(store.list(&damaged));
  std::map<std::string, LayerUse> layers;
  for (const image::Image& image : images) {
    for (const image::Layer& layer : image.layers) {
      LayerUse& use = layers[layer.diff_id.text()];
      use.bytes = layer.bytes;
      use.images.insert(image.id.text());
      use.active |= containers.contains(image.id.text());
    }
  }
  std::map<std::string, uint64_t> shared;
  for (const auto& [diff_id, layer] : layers) {
    usage.images.bytes += layer.bytes;
    usage.images.reclaimable += layer.active ? 0 : layer.bytes;
    if (layer.images.size() == 1) continue;
    for (const std::string& image : layer.images) shared[image] += layer.bytes;
  }
  std::set<std::string> told;
  for (ImageSummary& image : TRY(list_images(context))) {
    if (image.read_only || !told.insert(image.id).second) continue;
    auto users = containers.find(image.id);
    uint64_t count = users == containers.end() ? 0 : users->second;
    ++usage.images.total;
    usage.images.active += count > 0 ? 1 : 0;
    uint64_t bytes = shared[image.id];
    usage.each_image.push_back({std::move(image), bytes, count});
  }
  return {};
}

Result<void> add_volumes(const Context& context, DiskUsage& usage) {
  VolumeUsers users = TRY(list_volume_users(context));
  for (VolumeRecord& volume : TRY(list_volumes(context))) {
    uint64_t count = users.count(volume.name);
    uint64_t bytes = tree_size(volume_data(context.paths.root, volume.name));
    ++usage.volumes.total;
    usage.volumes.active += count > 0 ? 1 : 0;
    usage.volumes.bytes += bytes;
    usage.volumes.reclaimable += count > 0 ? 0 : bytes;
    usage.each_volume.push_back({std::move(volume), bytes, count});
  }
  return {};
}

}  // namespace

Result<DiskUsage> disk_usage(const Context& context) {
  DiskUsage usage;
  ContainerQuery query;
  query.all = query.details = query.sizes = true;
  usage.each_container = TRY(query_containers(context, query));
  std::map<std::string, uint64_t> containers;
  for (const ListedContainer& listed : usage.each_container) {
    ++containers[listed.summary.image_id];
    bool active = is_alive(listed.summary.state);
    uint64_t bytes = listed.size ? listed.size->written : 0;
    ++usage.containers.total;
    usage.containers.active += active ? 1 : 0;
    usage.containers.bytes += bytes;
    usage.containers.reclaimable += active ? 0 : bytes;
  }
  TRY(add_images(context, containers, usage));
  TRY(add_volumes(context, usage));
  BuildCache cache = TRY(look_at_build_cache(context));
  usage.build_cache = {cache.layers.size(), 0, cache.bytes, cache.in_use ? 0 : cache.bytes};
  return usage;
}

}  // namespace berth::engine
