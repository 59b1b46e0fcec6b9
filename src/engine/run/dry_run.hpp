// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/asked.hpp"
#include "engine/decide/explain.hpp"
#include "engine/image/transfer.hpp"
#include "plan/plan.hpp"

/// What run() would decide, printed instead of carried out. Nothing is started and nothing stays,
/// but images that were missing.  Errors: as run().
namespace berth::engine {

/// What berth-runtime would execute.
Result<plan::Plan> plan_run(const Context& context, Asked asked, const Progress& progress);

/// What the container would be given of GPUs, and why.
Result<Explained> explain_run(const Context& context, Asked asked, const Progress& progress);

}  // namespace berth::engine
