// SPDX-License-Identifier: Apache-2.0
#include "engine/build/buildah_cache.hpp"

#include <fcntl.h>

#include <algorithm>

#include "engine/build/steps.hpp"
#include "engine/image/tree_size.hpp"
#include "engine/state/journal.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

struct Layer {
  std::string id;
};
template <class V>
void fields(V& v, Layer& layer) {
  v.required("id", layer.id);
}

std::vector<std::string> names_in(const std::string& directory) {
  auto names = sys::list_directory(sys::cwd(), directory);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

/// containers/storage keeps one list for each driver: "overlay-layers/layers.json".
std::vector<std::string> layers_in(const std::string& storage) {
  std::vector<std::string> ids;
  for (const std::string& name : names_in(storage)) {
    if (!name.ends_with("-layers")) continue;
    std::string path = storage + "/" + name + "/layers.json";
    auto text = sys::read_file(sys::cwd(), path, json::Limits().max_bytes);
    if (!text.ok()) continue;
    // Another release may use another format: then no layers are listed, only the bytes are
    // counted.
    auto layers = json::read<std::vector<Layer>>(*text, path);
    if (!layers.ok()) continue;
    for (Layer& layer : *layers) ids.push_back(std::move(layer.id));
  }
  return ids;
}

/// With `lock`: no build runs. Without `lock`: a build runs, or no build ever ran (`there` is
/// false).
struct Idle {
  bool there = false;
  sys::Fd lock;
};
Result<Idle> lock_idle(const BuildPaths& paths) {
  Idle idle;
  auto file = TRY(sys::open_if_exists(sys::cwd(), paths.lock(), O_RDWR));
  if (!file) return idle;
  idle.there = true;
  if (TRY(sys::try_lock(*file, sys::LockMode::exclusive, paths.lock()))) {
    idle.lock = std::move(*file);
  }
  return idle;
}

BuildCache look(const BuildPaths& paths) {
  BuildCache cache;
  for (const std::string& platform : names_in(paths.storages())) {
    auto layers = layers_in(paths.storages() + "/" + platform);
    cache.layers.insert(cache.layers.end(), layers.begin(), layers.end());
  }
  std::ranges::sort(cache.layers);
  cache.bytes = tree_size(paths.storages());
  return cache;
}

}  // namespace

Result<BuildCache> look_at_build_cache(const Context& context) {
  BuildPaths paths(context.paths);
  bool in_use = false;
  {
    Idle idle = TRY(lock_idle(paths));
    in_use = idle.there && !idle.lock;
  }
  // Without the lock, so that a new build need not wait for it.
  BuildCache cache = look(paths);
  cache.in_use = in_use;
  return cache;
}

Result<Pruned> prune_build_cache(const Context& context) {
  BuildPaths paths(context.paths);
  Idle idle = TRY(lock_idle(paths));
  if (!idle.there) return Pruned{};
  if (!idle.lock) {
    return make_error(Kind::busy, "cannot remove the build cache: a build is running",
                      "again when it has ended");
  }
  BuildCache cache = look(paths);
  TRY(sys::remove_tree(sys::cwd(), paths.runs()));
  TRY(sys::remove_tree(sys::cwd(), paths.storages()));
  emit_event(context.paths, {"builder", "prune", "", {{"reclaimed", std::to_string(cache.bytes)}}});
  return Pruned{std::move(cache.layers), cache.bytes};
}

}  // namespace berth::engine
