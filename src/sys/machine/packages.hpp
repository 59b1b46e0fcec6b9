// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::sys {

/// The command that installs `package` (install_command()) on this machine's distribution, which is
/// read from /etc/os-release or /usr/lib/os-release. os-release(5)
std::string how_to_install(std::string_view package);

}  // namespace berth::sys
