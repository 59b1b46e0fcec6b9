// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/context/context.hpp"

namespace berth::engine {

/// Whether the caller is in a job of a batch scheduler, by gpu::find_job().
bool is_in_job(const Environment& environment);

}  // namespace berth::engine
