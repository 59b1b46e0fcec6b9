// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/berth/common.hpp"
#include "engine/request/request.hpp"

namespace berth::cli {

/// Prints the steps of `request`, as numbered lines or as {"steps": [{"name", "text", "members"}],
/// "warnings": []}.
Result<int> dry_run(Session& session, const engine::RunRequest& request,
                    const engine::RunCall& call, TransferDisplay& display, std::string_view format);

}  // namespace berth::cli
