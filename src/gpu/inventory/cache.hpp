// SPDX-License-Identifier: Apache-2.0
// The cached inventory: <state>/gpu/inventory-<root>.json, two lines of JSON. The second line is
// valid while the fingerprint in the first line equals that of the machine: boot id, version of the
// loaded module, the drivers' majors, the GPUs and MIG instances in procfs, the generation of AMD's
// topology, and device, inode, size and time of the sentinel files: the loader cache and
// ld.so.conf.d of the driver root, the directories of its libraries, libcuda and NVML, sockets, the
// directories in /dev, and the nodes. Every start with GPUs makes this comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// Additions of the site's policy to the search. A cached inventory is valid only for the same
/// additions.
struct Configured {
  std::vector<std::string> library_directories;  ///< below the driver root; searched first
  std::vector<std::string> files;                ///< of the machine, granted with every GPU

  bool operator==(const Configured&) const = default;
};

/// The first line of the file.
struct CacheHead {
  uint32_t format = 0;
  std::string driver_root;
  Configured configured;
  std::vector<std::string> sentinels;  ///< host paths
  std::string fingerprint;
  /// NVML did not answer and is asked again after this time, in seconds since the epoch. 0: never.
  int64_t retry_at = 0;
};

inline constexpr uint32_t kCacheFormat = 9;

/// The sentinel files for `inventory`; some may not exist.
std::vector<std::string> sentinels_of(const DriverRoot& root, const Inventory& inventory);

/// The present state of the machine as a string. A few dozen system calls.
Result<std::string> fingerprint(const DriverRoot& root, const std::vector<std::string>& sentinels);

/// The content of the cache file.
std::string write_cached(const CacheHead& head, const Inventory& inventory);

/// Parses the first line of `text` and leaves the rest in `inventory`. Nothing if the file is
/// damaged or was written by another version of Berth.
std::optional<CacheHead> read_cache_head(std::string_view text, std::string_view& inventory);

/// The inventory for `root` and `configured` that is cached in `directory`. Nothing if the file is
/// missing or stale, or if another user could have written it.
/// Errors: io.
Result<std::optional<Inventory>> find_cached(const sys::Fd& directory, const DriverRoot& root,
                                             const Configured& configured);

/// The name of the cache file of a driver root.
std::string cache_name(const std::string& driver_root);

void fields(auto& v, Configured& c) {
  v.optional("library_directories", c.library_directories);
  v.optional("files", c.files);
}

void fields(auto& v, CacheHead& c) {
  v.required("format", c.format);
  v.required("driver_root", c.driver_root);
  v.required("configured", c.configured);
  v.required("sentinels", c.sentinels);
  v.required("fingerprint", c.fingerprint);
  v.optional("retry_at", c.retry_at);
}

}  // namespace berth::gpu
