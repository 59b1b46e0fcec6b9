// SPDX-License-Identifier: Apache-2.0
// Does the work of NVIDIA's hooks in CDI files. We do not run these hooks: see
// gpu/cdi/known_hooks.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/user_mounts.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/edit.hpp"

namespace berth::gpu {

/// Replaces edits.freeze_device_nodes and edits.application_profile, which a config.json cannot
/// express, by files below `<state_dir>/gpu` and bind mounts of these files: driver parameters with
/// ModifyDeviceFiles: 0 (made from `params`, the machine's parameters; empty: it has none), and the
/// application profile that restricts EGL and Vulkan to the requested GPUs. Clears both members.
/// Errors: io, denied (the state directory).
Result<void> place_requests(oci::ContainerEdits& edits, const std::string& state_dir,
                            const std::string& params);

/// The application profile that restricts EGL and Vulkan to the GPUs with a minor in `visible`,
/// which has one bit for each minor.
std::string application_profile(uint64_t visible);

struct FinishOptions {
  std::string state_dir;                 ///< as in PlaceOptions
  bool forward_compatibility = true;     ///< the image's compat libraries may be used
  const Inventory* inventory = nullptr;  ///< null: this machine's GPUs are unknown
};

/// For driver mode `image`: keeps only those of `edits` that change none of the image's files.
/// Returns whether something was removed that is worth the warning kNodesAlone.
bool keep_nodes(oci::ContainerEdits& edits);
inline constexpr const char* kNodesAlone =
    "driver mode 'image': CDI devices give only nodes and variables, ignoring their mounts, links "
    "and hooks";

/// Whether finish_edits() can use an inventory for these edits.
bool wants_inventory(const oci::ContainerEdits& edits);

/// Completes `edits` of CDI files with facts about this machine: adds the brands of the GPUs to a
/// request for compat libraries (or removes the request if the site forbids it), and calls
/// place_requests().
/// Errors: io and denied (the state directory).
Result<void> finish_edits(oci::ContainerEdits& edits, const FinishOptions& options);

/// The LookAtHost for fit_places().
HostFile look_at_host(const std::string& path, const std::string& below);

/// The IsDevice for check_devices().
bool is_host_device(const std::string& path, const std::string& below, const oci::Device& device);

}  // namespace berth::gpu
