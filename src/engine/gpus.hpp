// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context.hpp"
#include "gpu/probe/probe.hpp"

namespace berth::engine {

/// What GPUs there are, from the cache where it is still true.
/// Errors: not_found (the driver root), corrupt.
Result<gpu::Inventory> list_gpus(const Context& context, gpu::Refresh refresh);

}  // namespace berth::engine
