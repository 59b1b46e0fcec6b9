// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/berth/common.hpp"
#include "engine/decide/resolve.hpp"

namespace berth::cli {

/// Prints what the container would get of GPUs and why, as `berth explain` does; starts nothing.
Result<int> explain_run(Session& session, engine::Asked asked, TransferDisplay& display,
                        std::string_view format);

}  // namespace berth::cli
