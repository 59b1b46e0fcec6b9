// SPDX-License-Identifier: Apache-2.0
#include "engine/context/job.hpp"

#include "gpu/grant/job.hpp"

namespace berth::engine {

bool is_in_job(const Environment& environment) {
  return gpu::find_job(gpu::Variables({}, environment.entries())).has_value();
}

}  // namespace berth::engine
