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
  /// Absolute path of the root of the driver's files. If the root has a file SYNTHETIC, its own
  /// proc/, sys/ and dev/ are read too; otherwise those of the machine are read.
  std::string driver_root = "/";
  Configured configured;  ///< additions of the site's policy to the search
  /// The result of services_of_root() from before a user namespace was entered; else empty.
  std::vector<std::string> services_of_root = {};
  /// The `--state` directory; the cache is in its subdirectory `gpu/`. Empty: nothing is cached.
  std::string state_dir;
  /// Path of berth-gpu-probe. Empty: NVML is not asked.
  std::string probe_program;
  /// A GPU without persistence mode needs 2 s or more to initialise.
  std::chrono::milliseconds nvml_deadline{10000};
};

/// Reads the machine: procfs, sysfs, device nodes, the driver's files, and NVML through
/// `probe_program`. A machine without a driver gives an inventory without GPUs; `problems` says
/// why. Each GPU is read once, which can wake it. Errors: not_found (the driver root), corrupt (a
/// malformed file of the driver).
Result<Inventory> probe(const ProbeOptions& options, Log& log);

/// The NVML library among the driver's files; null: there is none.
const DriverFile* find_nvml(const Inventory& inventory);

/// The directories of services ("/tmp/nvidia-mps", of MPS) that root has made on the machine of
/// `driver_root`. Call it before entering a user namespace, where root and all unmapped users have
/// the same id: CUDA uses such a directory whatever its owner is.
/// Source: nvidia-container-cli, which adds the directory to containers if it exists.
std::vector<std::string> services_of_root(const std::string& driver_root);

enum class Refresh { if_stale, always };

/// The cached inventory if nothing that it depends on has changed (boot, loaded module, majors, MIG
/// slices, the driver's files; see cache.hpp), else a fresh one, which is then cached. Any number
/// of processes may call this at once; only one of them probes. Errors: those of probe(). An
/// unreadable or unwritable cache causes a warning.
Result<Inventory> cached_inventory(const ProbeOptions& options, Refresh refresh, Log& log);

}  // namespace berth::gpu
