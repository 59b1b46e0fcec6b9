// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "gpu/inventory/cache.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

struct ProbeOptions {
  /// Absolute path below which the driver's files are. A root that holds a file SYNTHETIC also
  /// brings its own proc/, sys/ and dev/; with any other root those are the machine's.
  std::string driver_root = "/";
  Configured configured;  ///< what the site's policy adds to the search
  /// What services_of_root() said before a user namespace was entered; else nothing.
  std::vector<std::string> services_of_root = {};
  /// The `--state` directory; the cache is in its `gpu/`. Empty: nothing is cached.
  std::string state_dir;
  /// Path of berth-gpu-probe. Empty: NVML is not asked.
  std::string probe_program;
  /// A cold GPU without persistence mode takes 2 s and more.
  std::chrono::milliseconds nvml_deadline{10000};
};

/// Reads the machine: procfs, sysfs, device nodes, the driver's files, and NVML through
/// `probe_program`. A machine without a driver is an inventory without GPUs; what was found wrong
/// is in `problems`. A GPU costs a read that can wake it. Errors: not_found (the driver root),
/// corrupt (a file of the driver does not read as it must).
Result<Inventory> probe(const ProbeOptions& options, Log& log);

/// The driver's NVML among its files; null: it has none.
const DriverFile* find_nvml(const Inventory& inventory);

/// The directories of services ("/tmp/nvidia-mps", of MPS) that root has made on the machine of
/// `driver_root`. To be asked before a user namespace is entered, in which root's id is one with
/// those of strangers; CUDA looks into such a directory whoever has made it.
/// Source: nvidia-container-cli, which gives it to containers where it exists.
std::vector<std::string> services_of_root(const std::string& driver_root);

enum class Refresh { if_stale, always };

/// The cached inventory when nothing that it depends on has changed (boot, loaded module, majors,
/// MIG slices, the driver's files; see cache.hpp), else a fresh one, which is then cached. Any
/// number of processes may call this at once; one of them probes. Errors: as probe(). A cache that
/// cannot be read or written is a warning.
Result<Inventory> cached_inventory(const ProbeOptions& options, Refresh refresh, Log& log);

}  // namespace berth::gpu
