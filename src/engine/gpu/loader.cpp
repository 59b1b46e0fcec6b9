// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/loader.hpp"

#include <fcntl.h>

#include <set>
#include <utility>

#include "engine/image/rootfs_driver.hpp"
#include "gpu/place/publish.hpp"
#include "oci/edit.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxCache = size_t{16} << 20;
constexpr const char* kCacheName = "ld.so.cache";

/// Nothing if there is no such file, or if it is larger than a loader cache can be.
Result<std::optional<std::string>> read_cache(const sys::Fd& etc) {
  auto file = TRY(sys::find_regular(etc, kCacheName));
  if (!file) return std::optional<std::string>();
  struct stat status = TRY(sys::stat_fd(*file, kLoaderCache));
  if (static_cast<size_t>(status.st_size) > kMaxCache) return std::optional<std::string>();
  return std::optional(TRY(sys::read_all(*file, kLoaderCache, kMaxCache)));
}

Result<void> make_places(const sys::Fd& directory, const std::vector<scan::LibraryLink>& links) {
  std::set<std::string> made;
  auto write = [&](std::string_view path, std::string_view text) -> Result<void> {
    std::string below(path.substr(1));
    TRY(gpu::make_parents(directory, below, made));
    return sys::write_file(directory, below, text, 0644);
  };
  TRY(write("/etc/ld.so.cache", ""));  // the mount point, for a root that is read-only
  TRY(write(scan::kLoaderConfiguration, ""));
  TRY(write(scan::kMainConfiguration, scan::kMainConfigurationText));
  for (const scan::LibraryLink& link : links) {
    std::string below = link.path.substr(1);
    TRY(gpu::make_parents(directory, below, made));
    TRY(sys::make_symlink(link.target, directory, below));
  }
  return {};
}

}  // namespace

Result<OwnCache> judge_loader_cache(const sys::Fd& etc, const Merged& below,
                                    const std::vector<scan::LoaderEntry>& added) {
  OwnCache verdict;
  if (added.empty()) return verdict;
  auto own = TRY(read_cache(etc));
  if (!own) return verdict;
  std::string image;
  for (const sys::Fd& layer : below) {
    if (!TRY(sys::stat_entry(layer, kCacheName))) continue;
    image = TRY(read_cache(layer)).value_or("");  // a whiteout hides the layers below
    break;
  }
  verdict.unchanged = scan::is_same_but_for(*own, image, added);
  std::string without = scan::loader_cache_without(*own, added);
  if (!verdict.unchanged && without != *own) verdict.without = std::move(without);
  return verdict;
}

Result<void> add_loader_places(const Context& context, oci::Spec& spec) {
  auto lines = spec.annotations.find(std::string(oci::kLoaderCacheAnnotation));
  if (lines == spec.annotations.end() &&
      !spec.annotations.contains(std::string(oci::kCompatAnnotation))) {
    return {};
  }
  auto links = scan::default_links(loader_entries_of(spec));
  std::string content = "loader places\n";
  for (const auto& link : links) content += link.path + "\t" + link.target + "\n";
  const std::string directory = context.paths.state + "/loader";
  TRY(sys::make_directories(sys::cwd(), directory, 0700));
  sys::Fd parent = TRY(sys::open_at(sys::cwd(), directory, O_RDONLY | O_DIRECTORY));
  std::string name = "places-" + gpu::key_of_text(content);
  auto fill = [&](const sys::Fd& made) { return make_places(made, links); };
  TRY_CTX(gpu::publish_directory(parent, name, fill), "cannot prepare the loader's mount points");
  add_lowest_layer(directory + "/" + name, spec);
  return {};
}

std::vector<scan::LoaderEntry> loader_entries_of(const oci::Spec& spec) {
  std::vector<scan::LoaderEntry> entries;
  auto lines = spec.annotations.find(std::string(oci::kLoaderCacheAnnotation));
  if (lines == spec.annotations.end()) return entries;
  for (auto& line : oci::loader_entries_of(lines->second)) {
    entries.push_back({std::move(line.soname), std::move(line.path), line.flags});
  }
  return entries;
}

}  // namespace berth::engine
