// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/cdi.hpp"

namespace berth::gpu::cdi {

/// How devices are named: "0" and "0:1"; "GPU-…" and "MIG-…"; "gpu0" and "mig0:1".
enum class Naming { index, uuid, type_index };

struct GenerateOptions {
  Vendor vendor = Vendor::nvidia;
  std::string kind;  ///< "nvidia.com/gpu"
  std::vector<Naming> namings = {Naming::index, Naming::uuid};
  /// The CDI version; nothing: the lowest one that the content needs. Members that are newer than
  /// 0.5.0 are avoided where possible.
  std::optional<std::string> version;
  std::string hook_program;  ///< the absolute path of berth-cdi-hook
};

struct Generated {
  oci::cdi::Spec spec;
  std::vector<std::string> warnings;  ///< for people: engines that refuse the file, missing devices
};

/// The variable of our hook in a CDI file: the driver version that the file was made for.
inline constexpr std::string_view kDriverVariable = "BERTH_CDI_DRIVER=";

/// Describes the machine's GPUs for every engine that reads CDI: each GPU and slice under the names
/// of `options`, and "all". Nodes, files and their paths are those that `--gpus` grants with all
/// capabilities; links and the loader's cache are left to berth-cdi-hook. A GPU in MIG mode is not
/// listed, but its slices are. The same inventory gives the same value. Pure.
/// Errors: not_found (no GPU of that vendor, no driver), usage (a version below what the content
/// needs), unsupported (driver files of another version than the module).
Result<Generated> generate(const Inventory& inventory, const GenerateOptions& options);

/// The driver version that we made `spec` for; nothing if `spec` does not name one.
std::optional<std::string> made_for(const oci::cdi::Spec& spec);

}  // namespace berth::gpu::cdi
