// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::sys {

/// install_command() for this machine, by /etc/os-release or /usr/lib/os-release. os-release(5)
std::string how_to_install(std::string_view package);

}  // namespace berth::sys
