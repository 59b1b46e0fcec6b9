// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/loader_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/regular.hpp"
#include "sys/mount/mount.hpp"
#include "sys/user/confine.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMaxLines = size_t{4} << 20;

/// Opens a directory of the root itself; nothing if it is missing or in another mount.
std::optional<sys::Fd> own_directory(const sys::Fd& root, const std::string& path) {
  auto directory = sys::open_in_root(root, path, O_PATH | O_DIRECTORY);
  if (!directory.ok()) return std::nullopt;
  auto ours = sys::mount_id(root, "/");
  auto its = sys::mount_id(*directory, path);
  if (!ours.ok() || !its.ok() || *ours != *its) return std::nullopt;
  return std::move(*directory);
}

bool is_shared(const Store& store, const State& state) {
  auto ids = store.list();
  if (!ids.ok()) return false;
  for (const std::string& id : *ids) {
    if (id == state.id) continue;
    auto entry = store.get(id);
    if (!entry.ok()) continue;
    auto other = entry->read();
    if (!other.ok() || other->rootfs != state.rootfs) continue;
    if (entry->status(*other) != Status::stopped) return true;
  }
  return false;
}

/// Removes entries that are still as they were made: a link to the same library, a file with
/// exactly these bytes.
void remove_made(const sys::Fd& root, const std::string& path,
                 const std::vector<scan::LibraryLink>& links) {
  size_t slash = path.rfind('/');
  std::string name = path.substr(slash + 1);
  auto directory = own_directory(root, path.substr(0, slash));
  if (!directory) return;
  auto link = std::ranges::find(links, path, &scan::LibraryLink::path);
  if (link != links.end()) {
    auto text = sys::read_link(*directory, name);
    if (text.ok() && *text == link->target) ignore(sys::remove_entry(*directory, name));
    return;
  }
  bool is_main = path == scan::kMainConfiguration;
  if (!is_main && path != scan::kLoaderConfiguration) return;
  std::string_view bytes = is_main ? scan::kMainConfigurationText : std::string_view();
  auto file = sys::find_regular(*directory, name);
  if (!file.ok() || !*file) return;
  auto text = sys::read_all(**file, path, bytes.size());  // an error: the file has more bytes
  if (text.ok() && *text == bytes) ignore(sys::remove_entry(*directory, name));
}

/// Removes the cache from the root again. `was_there`: the root had a cache before.
Result<void> take_back_cache(const sys::Fd& root, const sys::Fd& entry, bool was_there,
                             const std::vector<scan::LoaderEntry>& added) {
  auto directory = own_directory(root, "/etc");
  if (!directory) return {};
  auto file = TRY(sys::find_regular(*directory, "ld.so.cache"));
  if (!file) return {};
  std::string now = TRY(sys::read_all(*file, kCachePath, static_cast<size_t>(kMaxCache)));
  std::string kept = TRY(sys::read_file(entry, kKeptCache, static_cast<size_t>(2 * kMaxCache)));
  std::string original = TRY(sys::read_file(entry, kOriginalCache, static_cast<size_t>(kMaxCache)));
  // The cache may also be empty, if the start failed before it was filled.
  if (now == kept || now.empty()) {
    if (!was_there) return sys::remove_entry(*directory, "ld.so.cache");
    if (now == kept) TRY(replace_cache(*directory, original));
    return {};
  }
  // ldconfig in the container has written this cache.
  auto without =
      TRY(sys::rewrite_confined(now, static_cast<size_t>(kMaxCache),
                                [&](std::string_view bytes) -> std::optional<std::string> {
                                  return scan::loader_cache_without(bytes, added);
                                }));
  if (!without || *without == now) return {};
  TRY(replace_cache(*directory, *without));
  return {};
}

}  // namespace

Result<sys::Fd> replace_cache(const sys::Fd& etc, std::string_view bytes) {
  const std::string name = "ld.so.cache";
  struct stat before = TRY(sys::stat_fd(etc, "/etc"));
  auto old = TRY(sys::stat_entry(etc, name));
  std::string other = ".ld.so.cache-" + sys::random_hex(8);
  auto file = TRY(sys::open_at(etc, other, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  auto replaced = [&]() -> Result<void> {
    // When the container is removed we may be root of the machine, while its root may have been
    // another user.
    if (old && S_ISREG(old->st_mode)) {
      ignore(sys::change_owner(file, old->st_uid, old->st_gid, name));  // an id without a mapping
    }
    TRY(sys::change_mode(file, 0644, name));  // our umask may say 077
    TRY(sys::write_at(file, 0, bytes, name));
    return sys::rename(etc, other, etc, name);
  }();
  if (!replaced.ok()) ignore(sys::remove_entry(etc, other));  // the first error counts
  auto nanoseconds = static_cast<uint32_t>(before.st_mtim.tv_nsec);
  ignore(sys::set_modified(etc, {before.st_mtim.tv_sec, nanoseconds}, "/etc"));
  TRY(std::move(replaced));
  return file;
}

bool leaves_loader_files(const plan::Plan& plan) {
  return plan::find<plan::FillLoaderFiles>(plan) != nullptr &&
         plan::find<plan::MountOverlayRoot>(plan) == nullptr;
}

Result<void> remove_loader_files(const Store& store, const State& state) {
  if (!state.loader_files) return {};
  Entry entry = TRY(store.get(state.id));
  auto text = TRY(sys::read_file_if_exists(entry.fd(), kKeptLines, kMaxLines));
  if (!text || is_shared(store, state)) return {};
  std::vector<scan::LoaderEntry> added;
  for (const auto& line : oci::loader_entries_of(*text)) {
    added.push_back({line.soname, line.path, line.flags});
  }
  auto root = TRY(sys::open_if_exists(sys::cwd(), state.rootfs, O_PATH | O_DIRECTORY));
  if (!root) return {};
  auto links = scan::default_links(added);
  auto made = TRY(sys::read_file_if_exists(entry.fd(), kMadeNames, kMaxLines));
  std::string names = std::move(made).value_or("");
  for (std::string_view path : split(names, '\n')) {
    if (path.starts_with('/')) remove_made(*root, std::string(path), links);
  }
  for (bool was_there : {false, true}) {
    std::string line = (was_there ? std::string(kReplaced) : std::string()) + kCachePath;
    if (("\n" + names).find("\n" + line + "\n") == std::string::npos) continue;
    return take_back_cache(*root, entry.fd(), was_there, added);
  }
  return {};  // the root was a bind mount, which no longer exists
}

}  // namespace berth::runtime
