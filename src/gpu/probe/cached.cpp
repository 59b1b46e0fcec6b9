// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <ctime>

#include "gpu/inventory/cache.hpp"
#include "gpu/probe/probe.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu {
namespace {

constexpr int64_t kRetrySeconds = 300;

// Opens <state>/gpu, made when missing.
Result<sys::Fd> open_cache_directory(const std::string& state_dir) {
  TRY(sys::make_directories(sys::cwd(), state_dir + "/gpu", 0700));
  return sys::open_at(sys::cwd(), state_dir + "/gpu", O_RDONLY | O_DIRECTORY);
}

Result<Inventory> probe_and_cache(const sys::Fd& directory, const DriverRoot& root,
                                  const ProbeOptions& options, Log& log) {
  // NVML may take seconds, in which a driver can be replaced or a slice be made: the result would
  // match neither state. The files of the inventory are only known afterwards.
  std::vector<std::string> known = sentinels_of(root, {});
  std::string before = TRY(fingerprint(root, known));
  auto inventory = TRY(probe(options, log));
  std::string after = TRY(fingerprint(root, known));
  if (after != before) {
    log.debug("the GPUs or their driver have changed meanwhile, ignoring the cache");
    return inventory;
  }
  CacheHead head;
  head.format = kCacheFormat;
  head.driver_root = root.path();
  head.configured = options.configured;
  head.sentinels = sentinels_of(root, inventory);
  head.fingerprint = TRY(fingerprint(root, head.sentinels));
  bool settled = inventory.nvml == "ok" || inventory.nvml == "missing" || inventory.gpus.empty();
  if (!settled) head.retry_at = ::time(nullptr) + kRetrySeconds;
  auto written =
      sys::replace_file(directory, cache_name(root.path()), write_cached(head, inventory), 0600);
  if (!written.ok()) {
    log.warn(fmt::format("cannot cache the GPU inventory: {}, ignoring", to_line(written.error())));
  }
  return inventory;
}

}  // namespace

Result<Inventory> cached_inventory(const ProbeOptions& options, Refresh refresh, Log& log) {
  if (options.state_dir.empty()) return probe(options, log);
  auto root = TRY(DriverRoot::open(options.driver_root));
  auto directory = open_cache_directory(options.state_dir);
  if (!directory.ok()) {
    log.warn(fmt::format("cannot cache the GPU inventory: {}, probing instead",
                         to_line(directory.error())));
    return probe(options, log);
  }
  if (refresh == Refresh::if_stale) {
    auto cached = TRY(find_cached(*directory, root, options.configured));
    if (cached) return std::move(*cached);
  }
  // One process probes; those that start at the same moment wait for its result, at most for NVML's
  // deadline; the kernel drops the lock of a dead owner.
  auto lock = TRY(sys::open_at(*directory, "inventory.lock", O_RDWR | O_CREAT, 0600));
  TRY(sys::wait_lock(lock, sys::LockMode::exclusive, "inventory.lock"));
  if (refresh == Refresh::if_stale) {
    auto cached = TRY(find_cached(*directory, root, options.configured));
    if (cached) return std::move(*cached);
  }
  return probe_and_cache(*directory, root, options, log);
}

}  // namespace berth::gpu
