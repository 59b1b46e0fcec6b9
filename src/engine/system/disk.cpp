// SPDX-License-Identifier: Apache-2.0
#include "engine/system/disk.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/build/buildah_cache.hpp"
#include "engine/container/life.hpp"
#include "engine/container/list.hpp"
#include "engine/context/time.hpp"
#include "engine/image/facts.hpp"
#include "engine/image/mounted.hpp"
#include "engine/image/store.hpp"
#include "engine/image/tree_size.hpp"
#include "engine/network/network_store.hpp"
#include "engine/state/journal.hpp"
#include "image/upkeep.hpp"

namespace berth::engine {
namespace {

bool is_layer(const image::ObjectUse& object) {
  return object.path.starts_with("layers/");
}

/// As docker counts for a prune: an object is active if a container uses an image that has it.
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

/// The checked filters that all kinds of prune share.
class PruneSieve {
 public:
  static Result<PruneSieve> make(const PruneOptions& options,
                                 const std::vector<std::string_view>& keys) {
    TRY(options.filters.check_keys(keys));
    PruneSieve sieve(options.filters);
    for (const std::string& text : options.filters.values("until")) {
      sieve.until_ = parse_moment(text, options.now);
      if (!sieve.until_) {
        return make_error(Kind::usage, "invalid filter " + quote("until=" + text) +
                                           ": expected a duration such as 24h, or a time");
      }
    }
    return sieve;
  }

  bool fits(const std::map<std::string, std::string>& labels, int64_t created_ns) const {
    if (until_ && created_ns > *until_) return false;
    if (!filters_.fits_labels(labels)) return false;
    auto unwanted = filters_.values("label!");
    return std::ranges::none_of(unwanted, [&](const std::string& text) {
      size_t equals = text.find('=');
      auto found = labels.find(text.substr(0, equals));
      if (found == labels.end()) return false;
      return equals == std::string::npos || found->second == text.substr(equals + 1);
    });
  }

 private:
  explicit PruneSieve(const Filters& filters) : filters_(filters) {}

  const Filters& filters_;
  std::optional<int64_t> until_;
};

// Always true, so that the prune continues: an object that came into use or was removed meanwhile
// is skipped; any other error is a warning.
bool stays(const Context& context, const Error& error) {
  if (error.kind == Kind::busy || error.kind == Kind::not_found) return true;
  context.log.warn(to_line(error) + ", ignoring");
  return true;
}

/// The size of all layers and blobs.
Result<uint64_t> bytes_of(const image::Store& store) {
  uint64_t bytes = 0;
  image::Usage usage = TRY(image::measure_usage(store));
  for (const image::ObjectUse& object : usage.objects) bytes += object.bytes;
  return bytes;
}

Result<std::set<std::string>> used_images(const Context& context) {
  std::set<std::string> used;
  for (const ContainerSummary& container : TRY(list_containers(context, Which::all))) {
    used.insert(container.image_id);
  }
  return used;
}

Result<std::vector<ListedContainer>> all_containers(const Context& context) {
  ContainerQuery query;
  query.all = query.details = query.sizes = true;
  return query_containers(context, query);
}

uint64_t volume_bytes(const Context& context, const std::string& name) {
  return tree_size(volume_data(context.paths.root, name));
}

void emit_prune(const Context& context, const std::string& type, const Pruned& pruned) {
  emit_event(context.paths, {type, "prune", "", {{"reclaimed", std::to_string(pruned.bytes)}}});
}

/// Removes the facts of the images, and emits the events.
void emit_shrunk(const Context& context, const std::vector<image::Image>& images,
                 const Shrunk& shrunk) {
  for (const ShrunkImage& gone : shrunk.images) {
    for (const image::Image& image : images) {
      if (image.id.text() == gone.id) forget_facts(context, image);
    }
    emit_image_event(context.paths, "delete", gone.id, gone.id);
  }
  emit_prune(context, "image", {{}, shrunk.before - shrunk.after});
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

Result<Shrunk> shrink_images(const Context& context, const ShrinkOptions& options) {
  image::Store store = TRY(open_own_store(context));
  std::vector<std::string> damaged;  // shrink() reports damaged images
  std::vector<image::Image> images = TRY(store.list(&damaged));
  std::set<Digest> mounted;
  for (const image::Image& image : TRY(find_mounted(store))) mounted.insert(image.manifest_digest);
  auto act = options.dry_run ? image::Act::no : image::Act::yes;
  auto result = TRY_CTX(store.shrink(options.most_bytes, act, mounted),
                        "cannot tell which images are needed");
  Shrunk shrunk;
  shrunk.before = result.before;
  shrunk.after = result.after;
  for (const Digest& layer : result.layers) shrunk.layers.push_back(layer.text());
  for (const image::ShrunkImage& image : result.images) {
    ShrunkImage gone{image.id.text(), {}, image.used_at, image.bytes};
    for (const auto& reference : image.references) gone.references.push_back(reference.familiar());
    shrunk.images.push_back(std::move(gone));
  }
  if (!options.dry_run) emit_shrunk(context, images, shrunk);
  return shrunk;
}

Result<Pruned> prune_containers(const Context& context, const PruneOptions& options) {
  PruneSieve sieve = TRY(PruneSieve::make(options, {"label", "label!", "until"}));
  Pruned pruned;
  for (const ListedContainer& listed : TRY(all_containers(context))) {
    const ContainerSummary& container = listed.summary;
    if (is_alive(container.state)) continue;
    if (!sieve.fits(listed.details.labels, container.created_ns)) continue;
    auto ended = end_for_removal(context, container.id, {});
    auto removed = ended.ok() ? remove_container(context, container.id, AnonymousVolumes::keep)
                              : Result<void>(std::move(ended).error());
    if (!removed.ok() && stays(context, removed.error())) continue;
    pruned.names.push_back(container.id);
    if (listed.size) pruned.bytes += listed.size->written;
  }
  emit_prune(context, "container", pruned);
  return pruned;
}

Result<Pruned> prune_volumes(const Context& context, const PruneOptions& options) {
  PruneSieve sieve = TRY(PruneSieve::make(options, {"label", "label!"}));
  Pruned pruned;
  VolumeUsers users = TRY(list_volume_users(context));
  for (const VolumeRecord& volume : TRY(list_volumes(context))) {
    if (!sieve.fits(volume.labels, volume.created_ns)) continue;
    if (users.count(volume.name) > 0) continue;
    uint64_t bytes = volume_bytes(context, volume.name);
    auto removed = remove_volume(context, volume.name);
    if (!removed.ok() && stays(context, removed.error())) continue;
    pruned.names.push_back(volume.name);
    pruned.bytes += bytes;
  }
  emit_prune(context, "volume", pruned);
  return pruned;
}

Result<Pruned> prune_networks(const Context& context, const PruneOptions& options) {
  PruneSieve sieve = TRY(PruneSieve::make(options, {"label", "label!", "until"}));
  Pruned pruned;
  for (const NetworkRecord& network : TRY(list_networks(context))) {
    if (!sieve.fits(network.labels, network.created_ns)) continue;
    auto removed = remove_network(context, network.name);
    if (!removed.ok() && stays(context, removed.error())) continue;
    pruned.names.push_back(network.name);
  }
  emit_prune(context, "network", pruned);
  return pruned;
}

Result<Pruned> prune_images(const Context& context, const PruneOptions& options) {
  PruneSieve sieve = TRY(PruneSieve::make(options, {"dangling", "label", "label!", "until"}));
  auto dangling = TRY(options.filters.flag("dangling"));
  bool all = options.all_images || (dangling && !*dangling);
  image::Store store = TRY(open_own_store(context));
  uint64_t before = TRY(bytes_of(store));
  std::set<std::string> used = TRY(used_images(context));
  Pruned pruned;
  for (const ImageSummary& image : TRY(list_images(context))) {
    if (image.read_only) continue;
    bool named = image.tag != "<none>";
    if ((named && !all) || used.contains(image.id)) continue;
    if (!sieve.fits(image.labels, image.created_at * kNanosecondsPerSecond)) continue;
    std::string name = named ? image.repository + ":" + image.tag : image.id;
    auto removed = remove_image(context, name, {});
    if (!removed.ok() && stays(context, removed.error())) continue;
    for (const std::string& text : removed->untagged) pruned.names.push_back("untagged: " + text);
    for (const std::string& text : removed->deleted) pruned.names.push_back("deleted: " + text);
  }
  // Also remove objects that no image needed before, since 'system df' counts them.
  auto collected = store.collect();
  if (!collected.ok()) stays(context, collected.error());
  uint64_t after = TRY(bytes_of(store));
  pruned.bytes = before - std::min(before, after);  // a pull may have added bytes meanwhile
  emit_prune(context, "image", pruned);
  return pruned;
}

}  // namespace berth::engine
