// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/asked.hpp"
#include "engine/image/transfer.hpp"
#include "engine/state/outcome.hpp"

namespace berth::engine {

/// Pulls the image if necessary, creates the container and starts it. In the foreground returns
/// when the container has ended, and passes on signals that other processes send to this one.
/// Detached, returns when the command runs.
/// On failure nothing of the container is left.
/// Errors: not_found (image, user, working directory), exists (the name), usage, denied,
/// unsupported, and those of pulling and of berth-runtime.
Result<RunOutcome> run(const Context& context, Asked asked, const Progress& progress);

}  // namespace berth::engine
