// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/asked.hpp"
#include "engine/image/transfer.hpp"
#include "engine/state/outcome.hpp"

namespace berth::engine {

/// Pulls the image if it has to, makes the container and starts it. In the foreground it returns
/// when the container has ended; signals that other processes send to this one are passed on.
/// Detached it returns when the command runs.
/// On failure nothing of the container is left.
/// Errors: not_found (image, user, working directory), exists (the name), usage, denied,
/// unsupported, and those of pulling and of berth-runtime.
Result<RunOutcome> run(const Context& context, Asked asked, const Progress& progress);

}  // namespace berth::engine
