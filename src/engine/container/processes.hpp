// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// The processes of a running container as the host's ps(1) lists them, with the host's ids.
/// `ps_arguments`: as with docker; empty means "-ef".
/// Errors: not_found, usage (not running), those of ps.
Result<std::string> container_processes(const Context& context, std::string_view reference,
                                        const std::vector<std::string>& ps_arguments);

}  // namespace berth::engine
