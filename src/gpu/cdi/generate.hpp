// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/cdi.hpp"

namespace berth::gpu::cdi {

/// How devices are called: "0" and "0:1"; "GPU-…" and "MIG-…"; "gpu0" and "mig0:1".
enum class Naming { index, uuid, type_index };

struct GenerateOptions {
  Vendor vendor = Vendor::nvidia;
  std::string kind;  ///< "nvidia.com/gpu"
  std::vector<Naming> namings = {Naming::index, Naming::uuid};
  /// Nothing: the lowest that the content needs, and no member beyond 0.5.0 but an unavoidable one.
  std::optional<std::string> version;
  std::string hook_program;  ///< the absolute path of berth-cdi-hook
};

struct Generated {
  oci::cdi::Spec spec;
  std::vector<std::string> warnings;  ///< for people: who is going to refuse it, what is not in it
};

/// The variable of our hook that says for which driver a file was made.
inline constexpr std::string_view kDriverVariable = "BERTH_CDI_DRIVER=";

/// Describes the machine's GPUs for every engine that reads CDI: each GPU and slice under the names
/// asked for, and "all". Nodes, files and their places are those that `--gpus` gives with all
/// capabilities; links and the loader's cache are left to berth-cdi-hook. A GPU in MIG mode is not
/// listed, its slices are. The same inventory gives the same value. Pure.
/// Errors: not_found (no GPU of that vendor, no driver), usage (a version below what the content
/// needs), unsupported (driver files of another version than the module).
Result<Generated> generate(const Inventory& inventory, const GenerateOptions& options);

/// For which driver version `spec` was made by us; nothing where it does not say.
std::optional<std::string> made_for(const oci::cdi::Spec& spec);

}  // namespace berth::gpu::cdi
