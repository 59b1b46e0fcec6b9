// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "engine/context/context.hpp"

namespace berth::engine {

/// The text that the user's configuration of docker's client ($DOCKER_CONFIG/config.json, else
/// ~/.docker/config.json) has in `member`, such as "psFormat"; empty where it has none. A file that
/// cannot be read is a warning.
std::string client_config(const Context& context, std::string_view member);

}  // namespace berth::engine
