// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "engine/context/context.hpp"

namespace berth::engine {

/// The string `member`, such as "psFormat", of the user's docker client configuration
/// ($DOCKER_CONFIG/config.json, else ~/.docker/config.json); empty if absent. Warns about a file
/// that cannot be read.
std::string client_config(const Context& context, std::string_view member);

}  // namespace berth::engine
