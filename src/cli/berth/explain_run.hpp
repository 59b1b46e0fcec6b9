// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/berth/common.hpp"
#include "engine/decide/resolve.hpp"

namespace berth::cli {

/// Prints which GPUs and driver files the container would get and why, as `berth explain` does.
/// Starts nothing.
Result<int> explain_run(Session& session, engine::Asked asked, TransferDisplay& display,
                        std::string_view format);

}  // namespace berth::cli
