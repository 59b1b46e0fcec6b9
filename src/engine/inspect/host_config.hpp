// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/inspect/container_facts.hpp"

namespace berth::engine {

/// "HostConfig" of `inspect`: the container's request to the host. Pure.
json::Value host_config(const ContainerFacts& facts);

/// "SOURCE:DESTINATION[:OPTIONS]" of one -v.
std::string bind_text(const Volume& volume);

}  // namespace berth::engine
