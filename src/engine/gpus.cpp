// SPDX-License-Identifier: Apache-2.0
#include "engine/gpus.hpp"

namespace berth::engine {

Result<gpu::Inventory> list_gpus(const Context& context, gpu::Refresh refresh) {
  gpu::ProbeOptions options{.driver_root = context.paths.driver_root,
                            .state_dir = context.paths.state,
                            .probe_program = context.paths.libexec + "/berth-gpu-probe"};
  return TRY_CTX(gpu::cached_inventory(options, refresh, context.log), "cannot list GPUs");
}

}  // namespace berth::engine
