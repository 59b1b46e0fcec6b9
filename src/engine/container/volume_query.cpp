// SPDX-License-Identifier: Apache-2.0
#include "engine/container/volume_query.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/context/document_values.hpp"
#include "engine/context/time.hpp"

namespace berth::engine {

Result<std::vector<VolumeRecord>> query_volumes(const Context& context, const Filters& filters) {
  TRY(filters.check_keys({"dangling", "driver", "label", "name"}));
  auto dangling = TRY(filters.flag("dangling"));
  VolumeUsers users;
  if (dangling) users = TRY(list_volume_users(context));
  std::vector<VolumeRecord> found;
  for (VolumeRecord& volume : TRY(list_volumes(context))) {
    auto is_driver = [&](const std::string& driver) { return driver == volume.driver; };
    auto is_name = [&](const std::string& part) {
      return volume.name.find(part) != std::string::npos;
    };
    if (!filters.fits("driver", is_driver) || !filters.fits("name", is_name)) continue;
    if (!filters.fits_labels(volume.labels)) continue;
    if (dangling && (users.count(volume.name) == 0) != *dangling) continue;
    found.push_back(std::move(volume));
  }
  std::sort(found.begin(), found.end(),
            [](const VolumeRecord& a, const VolumeRecord& b) { return a.name < b.name; });
  return found;
}

Result<std::string> inspect_volume(const Context& context, const std::string& name) {
  auto volume = TRY(find_volume(context, name));
  if (!volume) {
    return make_error(Kind::not_found, "no such volume: " + escape_controls(name),
                      "berth volume ls");
  }
  return json::dump(json::Object{
      {"CreatedAt", format_time(volume->created_ns / 1'000'000'000)},
      {"Driver", volume->driver},
      {"Labels", text_map(volume->labels)},
      {"Mountpoint", volume_data(context.paths.root, volume->name)},
      {"Name", volume->name},
      {"Options", text_map(volume->options)},
      {"Scope", "local"},
  });
}

}  // namespace berth::engine
