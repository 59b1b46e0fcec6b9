// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/loader_cache.hpp"

#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxCache = size_t{16} << 20;
constexpr const char* kCacheName = "ld.so.cache";

/// Nothing: there is no such file, or it is larger than a loader cache can be.
Result<std::optional<std::string>> read_cache(const sys::Fd& etc) {
  auto file = TRY(sys::find_regular(etc, kCacheName));
  if (!file) return std::optional<std::string>();
  struct stat status = TRY(sys::stat_fd(*file, kLoaderCache));
  if (static_cast<size_t>(status.st_size) > kMaxCache) return std::optional<std::string>();
  return std::optional(TRY(sys::read_all(*file, kLoaderCache, kMaxCache)));
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
    image = TRY(read_cache(layer)).value_or("");  // a whiteout hides what is below
    break;
  }
  verdict.unchanged = scan::is_same_but_for(*own, image, added);
  std::string without = scan::loader_cache_without(*own, added);
  if (!verdict.unchanged && without != *own) verdict.without = std::move(without);
  return verdict;
}

}  // namespace berth::engine
