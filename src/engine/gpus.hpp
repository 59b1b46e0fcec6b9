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

/// Gives the GPUs that `wish` (the text of --gpus) names to `spec`. `image_env` are the image's own
/// variables; `layers` the image's, highest first.
/// Errors: those of parsing, granting and placing (gpu/grant/grant.hpp).
Result<void> add_gpus(const Context& context, const std::string& wish,
                      const std::vector<std::string>& image_env,
                      const std::vector<std::string>& layers, oci::Spec& spec);

}  // namespace berth::engine
