// SPDX-License-Identifier: Apache-2.0
#include "engine/container/volume_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "engine/context/document_values.hpp"
#include "engine/context/time.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

constexpr const char* kRecord = "volume.json";
constexpr const char* kData = "_data";
/// Exists while a volume is being filled. If a killed process left it, the contents are removed.
constexpr const char* kFilling = "filling";
constexpr size_t kMaxRecord = size_t{1} << 20;

std::string volumes_directory(const std::string& root) {
  return root + "/volumes";
}

/// A volume's directory, locked until this object is destroyed.
Result<std::optional<sys::Fd>> lock_volume(const Context& context, const std::string& name) {
  std::string path = volumes_directory(context.paths.root) + "/" + name;
  while (true) {
    auto directory =
        TRY(sys::open_if_exists(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!directory) return std::optional<sys::Fd>();
    TRY(sys::wait_lock(*directory, sys::LockMode::exclusive, path));
    // The previous lock holder may have removed it.
    struct stat locked = TRY(sys::stat_fd(*directory, path));
    auto there = TRY(sys::stat_entry(sys::cwd(), path));
    if (there && there->st_ino == locked.st_ino) return directory;
  }
}

Result<VolumeRecord> read_record(const sys::Fd& directory, const std::string& name) {
  std::string text = TRY(sys::read_file(directory, kRecord, kMaxRecord));
  return json::read<VolumeRecord>(text, "volume " + quote(name));
}

Result<void> empty_directory(const sys::Fd& directory) {
  for (const std::string& entry : TRY(sys::list_directory(directory, "."))) {
    TRY(sys::remove_tree(directory, entry));
  }
  return {};
}

/// Removes what a killed make_volume() or remove_volume() left. The lock of a running one is on its
/// directory.
void remove_leftovers(const sys::Fd& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.starts_with(".gone-") && !name.starts_with(".new-")) continue;
    auto left = sys::open_if_exists(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!left.ok() || !*left) continue;
    auto locked = sys::try_lock(**left, sys::LockMode::exclusive, name);
    if (locked.ok() && *locked) ignore(sys::remove_tree(directory, name));
  }
}

/// A directory `name` that remove_leftovers() leaves alone.
struct Staged {
  std::string name;
  sys::Fd lock;
};
Result<Staged> make_staging(const sys::Fd& directory) {
  while (true) {
    std::string name = ".new-" + sys::random_hex(16);
    TRY(sys::make_directory(directory, name, 0700));
    auto made = TRY(sys::open_if_exists(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!made) continue;  // remove_leftovers() was faster
    TRY(sys::wait_lock(*made, sys::LockMode::exclusive, name));
    if (TRY(sys::stat_entry(directory, name))) return Staged{std::move(name), std::move(*made)};
  }
}

/// Removes the anonymous volumes that `is_to_go` picks; failures go to the debug log.
template <class Pick>
void remove_anonymous(const Context& context, const Pick& is_to_go) {
  constexpr size_t kMadeUp = 64;  // digits of a name
  std::string all = volumes_directory(context.paths.root);
  auto directory = sys::open_if_exists(sys::cwd(), all, O_RDONLY | O_DIRECTORY);
  if (!directory.ok() || !*directory) return;
  auto names = sys::list_directory(**directory, ".");
  if (!names.ok()) return;
  remove_leftovers(**directory, *names);
  for (const std::string& name : *names) {
    if (name.size() != kMadeUp) continue;
    auto record = find_volume(context, name);
    bool picked = record.ok() && *record && (*record)->anonymous && is_to_go(**record);
    if (!picked) continue;
    auto removed = remove_volume(context, name);
    if (!removed.ok()) context.log.debug(to_line(removed.error()) + ", ignoring");
  }
}

/// The ids of containers, running or not, that mount the volume.  Errors: io.
Result<std::vector<std::string>> containers_of_volume(const Context& context,
                                                      const std::string& name) {
  return containers_with(context.paths, "/volumes/" + name + "/" + kData);
}

}  // namespace

std::string volume_data(const std::string& root, const std::string& name) {
  return volumes_directory(root) + "/" + name + "/" + kData;
}

Result<VolumeRecord> make_volume(const Context& context, VolumeRecord wish) {
  if (wish.driver != "local") {
    return make_error(Kind::unsupported,
                      "volume driver " + quote(wish.driver) + ": the only driver is local");
  }
  if (!wish.options.empty()) {
    return make_error(
        Kind::unsupported,
        "option " + quote(wish.options.begin()->first) + " of a volume: the local driver has none",
        "-v SOURCE:TARGET for a directory of the host");
  }
  if (wish.name.empty()) {
    wish.name = sys::random_hex(32);
    wish.anonymous = true;
  }
  TRY(check_volume_name(wish.name));
  if (auto found = TRY(find_volume(context, wish.name))) return std::move(*found);
  wish.created_ns = nanoseconds_now();
  std::string all = volumes_directory(context.paths.root);
  TRY(sys::make_directory(sys::cwd(), all, 0700));
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), all, O_RDONLY | O_DIRECTORY));
  // Complete before it gets its name, so that no process sees half of it.
  Staged staging = TRY(make_staging(directory));
  auto write = [&]() -> Result<void> {
    TRY(sys::make_directory(directory, staging.name + "/" + kData, 0755));
    TRY(sys::write_file(directory, staging.name + "/" + kRecord, json::write(wish), 0600));
    return sys::rename_new(directory, staging.name, directory, wish.name);
  };
  auto written = write();
  if (written.ok()) {
    emit_event(context.paths, {"volume", "create", wish.name, {{"driver", wish.driver}}});
    return wish;
  }
  static_cast<void>(sys::remove_tree(directory, staging.name).ok());
  if (written.error().kind != Kind::exists) return std::move(written).error();
  auto other = TRY(find_volume(context, wish.name));  // another process was faster
  if (!other) return std::move(written).error();
  return std::move(*other);
}

Result<std::optional<VolumeRecord>> find_volume(const Context& context, const std::string& name) {
  if (!check_volume_name(name).ok()) return std::optional<VolumeRecord>();
  auto directory =
      TRY(sys::open_if_exists(sys::cwd(), volumes_directory(context.paths.root) + "/" + name,
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (!directory) return std::optional<VolumeRecord>();
  VolumeRecord record = TRY(read_record(*directory, name));
  return std::optional<VolumeRecord>(std::move(record));
}

Result<std::vector<VolumeRecord>> list_volumes(const Context& context) {
  std::vector<VolumeRecord> out;
  auto directory = TRY(sys::open_if_exists(sys::cwd(), volumes_directory(context.paths.root),
                                           O_RDONLY | O_DIRECTORY));
  if (!directory) return out;
  for (const std::string& name : TRY(sys::list_directory(*directory, "."))) {
    auto found = find_volume(context, name);
    // A volume that is removed meanwhile is skipped.
    if (found.ok() && *found) out.push_back(std::move(**found));
  }
  return out;
}

Result<VolumeUsers> list_volume_users(const Context& context) {
  const std::string before = "/volumes/";
  const std::string after = std::string("/") + kData;
  VolumeUsers users;
  for (const std::string& id : TRY(container_ids(context.paths.root))) {
    auto config = config_of(context.paths, id);
    if (!config) ++users.unreadable;
    std::set<std::string> mounted;
    for (size_t at = config ? config->find(before) : std::string::npos; at != std::string::npos;
         at = config->find(before, at + 1)) {
      size_t name = at + before.size();
      size_t end = std::min(config->find('/', name), config->size());
      if (config->compare(end, after.size(), after) == 0) {
        mounted.insert(config->substr(name, end - name));
      }
    }
    for (const std::string& volume : mounted) ++users.known[volume];
  }
  return users;
}

Result<void> remove_volume(const Context& context, const std::string& name) {
  auto directory = TRY(lock_volume(context, name));
  if (!directory || !check_volume_name(name).ok()) {
    return make_error(Kind::not_found, "no such volume: " + escape_controls(name));
  }
  auto users = TRY(containers_of_volume(context, name));
  if (!users.empty()) {
    return make_error(Kind::busy, "remove " + escape_controls(name) + ": volume is in use - [" +
                                      join(users, ", ") + "]");
  }
  // Renamed first, so that no process finds a half-removed volume.
  sys::Fd all =
      TRY(sys::open_at(sys::cwd(), volumes_directory(context.paths.root), O_RDONLY | O_DIRECTORY));
  std::string going = ".gone-" + sys::random_hex(16);
  TRY(sys::rename(all, name, all, going));
  emit_event(context.paths, {"volume", "destroy", name, {{"driver", "local"}}});
  return sys::remove_tree(all, going);
}

void remove_volumes_of(const Context& context, const std::string& id) {
  remove_anonymous(context, [&](const VolumeRecord& volume) { return volume.container == id; });
}

void sweep_volumes(const Context& context) {
  remove_anonymous(context, [&](const VolumeRecord& volume) {
    if (!volume.goes_with_it || volume.container.empty()) return false;
    auto there = sys::stat_entry(sys::cwd(), container_path(context.paths, volume.container));
    return there.ok() && !*there;
  });
}

Result<void> fill_if_empty(const Context& context, const Volume& volume, const LayerView& view) {
  auto directory = TRY(lock_volume(context, volume.name));
  if (!directory) return make_error(Kind::busy, "volume " + quote(volume.name) + " is removed");
  sys::Fd data = TRY(sys::open_at(*directory, kData, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  bool torn = TRY(sys::stat_entry(*directory, kFilling)).has_value();
  if (torn) TRY(empty_directory(data));
  // With more than one entry this call fails, which also means that the volume is not empty.
  auto entries = sys::list_directory(data, ".", 1);
  if (!entries.ok() || !entries->empty()) return {};
  TRY(sys::write_file(*directory, kFilling, "", 0600));
  TRY(view.copy_tree(volume.destination, data));
  return sys::remove_entry(*directory, kFilling);
}

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
  std::ranges::sort(found, {}, &VolumeRecord::name);
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
