// SPDX-License-Identifier: Apache-2.0
// The cached inventory: <state>/gpu/inventory-<root>.json. It is believed while its fingerprint is
// that of the machine: boot id, version of the loaded module, majors, the GPUs and MIG instances
// that procfs names, and device, inode, size and time of the sentinel files: the loader cache and
// ld.so.conf.d of the driver root, libcuda and NVML, the driver's sockets, /dev, and the nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/inventory.hpp"
#include "sys/fd.hpp"

namespace berth::gpu {

struct CachedInventory {
  uint32_t format = 0;
  std::vector<std::string> sentinels;  ///< host paths
  std::string fingerprint;
  /// Seconds since the epoch after which NVML is asked again, because it did not answer; 0: never.
  int64_t retry_at = 0;
  Inventory inventory;
};

inline constexpr uint32_t kCacheFormat = 4;

/// The sentinel files of what `inventory` was made from, present or not.
std::vector<std::string> sentinels_of(const DriverRoot& root, const Inventory& inventory);

/// What the machine is now, as one text. A few dozen system calls.
Result<std::string> fingerprint(const DriverRoot& root, const std::vector<std::string>& sentinels);

/// The inventory that is cached in `directory`; nothing when there is none, or none that is still
/// true. Errors: io.
Result<std::optional<Inventory>> find_cached(const sys::Fd& directory, const DriverRoot& root);

/// The name of the cache file of a driver root.
std::string cache_name(const std::string& driver_root);

template <class V>
void fields(V& v, CachedInventory& c) {
  v.required("format", c.format);
  v.required("sentinels", c.sentinels);
  v.required("fingerprint", c.fingerprint);
  v.optional("retry_at", c.retry_at);
  v.required("inventory", c.inventory);
}

}  // namespace berth::gpu
