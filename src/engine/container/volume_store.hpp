// SPDX-License-Identifier: Apache-2.0
// The store of volumes: <root>/volumes/<name> holds _data, which containers mount, and volume.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/request/volume.hpp"

namespace berth::engine {

struct VolumeRecord {
  std::string name;
  std::string driver = "local";
  int64_t created_ns = 0;  ///< since 1970
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> options;
  bool anonymous = false;     ///< the name is generated
  std::string container;      ///< the container that an anonymous volume was made for
  bool goes_with_it = false;  ///< is removed together with that container
};
template <class V>
void fields(V& v, VolumeRecord& r) {
  v.required("name", r.name);
  v.required("driver", r.driver);
  v.required("created_ns", r.created_ns);
  v.optional("labels", r.labels);
  v.optional("options", r.options);
  v.optional("anonymous", r.anonymous);
  v.optional("container", r.container);
  v.optional("goes_with_it", r.goes_with_it);
}

/// The absolute path that containers mount for the volume `name` of the store at `root`.
std::string volume_data(const std::string& root, const std::string& name);

/// Makes the volume and returns it; does not change an existing volume of that name. Generates a
/// name if `wish` has none.
/// Errors: usage (the name), unsupported (a driver other than local, options).
Result<VolumeRecord> make_volume(const Context& context, VolumeRecord wish);

/// Errors: corrupt.
Result<std::optional<VolumeRecord>> find_volume(const Context& context, const std::string& name);
/// Sorted by name.  Errors: io.
Result<std::vector<VolumeRecord>> list_volumes(const Context& context);

/// How many containers mount each volume, counted in one pass over the containers.
struct VolumeUsers {
  std::map<std::string, uint64_t> known;  ///< by volume name: how many containers mount it
  uint64_t unreadable = 0;  ///< containers that may mount any volume, such as unfinished ones
  uint64_t count(const std::string& volume) const {
    auto found = known.find(volume);
    return unreadable + (found == known.end() ? 0 : found->second);
  }
};
/// Errors: io.
Result<VolumeUsers> list_volume_users(const Context& context);

/// Errors: not_found ("no such volume"), busy (a container mounts it; docker's message, with the
/// ids).
Result<void> remove_volume(const Context& context, const std::string& name);

/// Removes the anonymous volumes that were made for container `id`, unless another container mounts
/// them. Cheap when there are none.
void remove_volumes_of(const Context& context, const std::string& id);

/// Removes volumes that should have been removed with their containers. Cheap when there is nothing
/// to do.
void sweep_volumes(const Context& context);

/// Fills a volume, if it is empty, with the files of `view` at the volume's destination. Containers
/// that share a volume wait for each other.  Errors: busy (it is being removed), io, denied.
Result<void> fill_if_empty(const Context& context, const Volume& volume, const LayerView& view);

/// Sorted by name. Filters: dangling, driver, label, name.  Errors: usage (a filter), io.
Result<std::vector<VolumeRecord>> query_volumes(const Context& context, const Filters& filters);

/// One JSON object with the members of `docker volume inspect`.
/// Errors: not_found ("no such volume: X").
Result<std::string> inspect_volume(const Context& context, const std::string& name);

}  // namespace berth::engine
