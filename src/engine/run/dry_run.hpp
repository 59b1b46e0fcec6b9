// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/image/transfer.hpp"
#include "engine/request/request.hpp"
#include "plan/plan.hpp"

namespace berth::engine {

/// What run() would make the runtime do; nothing is started and nothing stays (an image that is
/// missing is pulled).
/// Errors: as run().
Result<plan::Plan> plan_run(const Context& context, const RunRequest& request, const RunCall& call,
                            const Progress& progress);

}  // namespace berth::engine
