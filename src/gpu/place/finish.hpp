// SPDX-License-Identifier: Apache-2.0
// What CDI files ask for by hooks of NVIDIA's that are not run: see gpu/cdi/known_hooks.hpp.
#pragma once

#include <string>

#include "base/result.hpp"
#include "gpu/grant/user_mounts.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/edit.hpp"

namespace berth::gpu {

struct FinishOptions {
  std::string state_dir;                 ///< as in PlaceOptions
  bool forward_compatibility = true;     ///< the image's compat libraries may be used
  const Inventory* inventory = nullptr;  ///< null: nothing is known of this machine's GPUs
};

/// For driver mode `image`: leaves of `edits` what changes nothing of the image's files. True where
/// that is less, and kNodesAlone worth a warning.
bool keep_nodes(oci::ContainerEdits& edits);
inline constexpr const char* kNodesAlone =
    "driver mode 'image': CDI devices give only nodes and variables, ignoring their mounts, links "
    "and hooks";

/// Whether finish_edits() is better with an inventory than without.
bool wants_inventory(const oci::ContainerEdits& edits);

/// Completes `edits` of CDI files with what takes a look at this machine: the brands of the GPUs
/// whose compat libraries are asked for, which are taken out where the site does not want them, and
/// what place_requests() lays out.
/// Errors: io and denied (the state directory).
Result<void> finish_edits(oci::ContainerEdits& edits, const FinishOptions& options);

/// For fit_places().
HostFile look_at_host(const std::string& path, const std::string& below);

/// For check_devices().
bool is_host_device(const std::string& path, const std::string& below, const oci::Device& device);

}  // namespace berth::gpu
