// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/berth/common.hpp"
#include "engine/request/request.hpp"

namespace berth::cli {

/// Prints the GPUs that `request` would get and why, as `berth explain` does; starts nothing.
Result<int> explain_run(Session& session, const engine::RunRequest& request,
                        const engine::RunCall& call, TransferDisplay& display,
                        std::string_view format);

}  // namespace berth::cli
