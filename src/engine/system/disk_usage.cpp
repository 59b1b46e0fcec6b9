// SPDX-License-Identifier: Apache-2.0
#include "engine/system/disk_usage.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "engine/build/cache.hpp"
#include "engine/container/list.hpp"
#include "engine/image/store.hpp"
#include "engine/image/tree_size.hpp"
#include "image/upkeep.hpp"

namespace berth::engine {
namespace {

bool is_layer(const image::ObjectUse& object) {
  return object.path.starts_with("layers/");
}

/// As docker counts for a prune: an object is active if a container uses one of its images.
bool is_active(const image::ObjectUse& object, const std::set<Digest>& used) {
  return object.held || std::ranges::any_of(object.images, [&](const Digest& manifest) {
           return used.contains(manifest);
         });
}

Result<void> add_images(const Context& context, const std::map<std::string, uint64_t>& containers,
                        DiskUsage& usage) {
  image::Store store = TRY(open_own_store(context));
  std::vector<std::string> damaged;
  std::map<Digest, std::string> ids;  // by manifest
  std::set<Digest> used;
  std::map<Digest, std::set<std::string>> owners;  // by layer
  std::map<std::string, uint64_t> shared, blobs;   // by image id
  std::vector<image::Image> images = TRY(store.list(&damaged));
  for (const image::Image& image : images) {
    ids[image.manifest_digest] = image.id.text();
    if (containers.contains(image.id.text())) used.insert(image.manifest_digest);
    for (const image::Layer& layer : image.layers) owners[layer.diff_id].insert(image.id.text());
  }
  for (const image::Image& image : images) {
    shared[image.id.text()] = 0;
    for (const image::Layer& layer : image.layers) {
      if (owners[layer.diff_id].size() > 1) shared[image.id.text()] += layer.bytes;
    }
  }
  image::Usage objects = TRY(image::measure_usage(store));
  usage.linked_bytes = objects.saved;
  for (const image::ObjectUse& object : objects.objects) {
    usage.images.bytes += object.bytes;
    usage.images.reclaimable += is_active(object, used) ? 0 : object.bytes;
    if (is_layer(object)) continue;
    for (const Digest& manifest : object.images) blobs[ids[manifest]] += object.bytes;
  }
  std::set<std::string> told;
  for (ImageSummary& image : TRY(list_images(context))) {
    if (image.read_only || !told.insert(image.id).second) continue;
    auto users = containers.find(image.id);
    uint64_t count = users == containers.end() ? 0 : users->second;
    ++usage.images.total;
    usage.images.active += count > 0 ? 1 : 0;
    uint64_t in_layers = shared[image.id], in_blobs = blobs[image.id];
    usage.each_image.push_back({std::move(image), in_layers, in_blobs, count});
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
