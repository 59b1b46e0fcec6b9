// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "gpu/probe/probe.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// The machine's GPUs and driver, from the cache unless it is stale or `refresh` says otherwise.
/// Errors: not_found (the driver root), corrupt.
Result<gpu::Inventory> list_gpus(const Context& context, gpu::Refresh refresh);

/// The variables that say what of a driver a container needs: the image's, but those with which a
/// user overrules an image (NVIDIA_DRIVER_CAPABILITIES, NVIDIA_DISABLE_REQUIRE) as in `container`,
/// the environment that was made of the image's and the user's.
std::vector<std::string> gpu_environment(std::vector<std::string> image,
                                         const std::vector<std::string>& container);

/// Gives the GPUs that `wish` (the text of --gpus) names to `spec`. `environment` is that of
/// gpu_environment(); `layers` the image's, highest first.
/// Errors: those of parsing, granting and placing (gpu/grant/grant.hpp).
Result<void> add_gpus(const Context& context, const std::string& wish,
                      const std::vector<std::string>& environment,
                      const std::vector<std::string>& layers, oci::Spec& spec);

}  // namespace berth::engine
