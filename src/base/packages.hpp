// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth {

/// The command to install a package on a machine with this /etc/os-release. `package` is the name
/// of the package in Debian. Examples: "apt install uidmap", "dnf install shadow-utils"; "install
/// the package uidmap" on an unknown system. Pure. Source: os-release(5) ID and ID_LIKE.
std::string install_command(std::string_view package, std::string_view os_release);

}  // namespace berth
