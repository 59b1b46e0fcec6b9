// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/berth/common.hpp"
#include "engine/decide/resolve.hpp"

namespace berth::cli {

/// Prints the steps that the container would take, as numbered lines or as
/// {"steps": [{"name", "text", "members"}], "warnings": []}.
Result<int> dry_run(Session& session, engine::Asked asked, TransferDisplay& display,
                    std::string_view format);

}  // namespace berth::cli
