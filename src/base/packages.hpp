// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth {

/// How a machine whose /etc/os-release has this text installs a package, of which `package` is
/// Debian's name: "apt install uidmap", "dnf install shadow-utils"; "install the package uidmap"
/// where the system is none that is known. Pure. Source: os-release(5) ID and ID_LIKE.
std::string install_command(std::string_view package, std::string_view os_release);

}  // namespace berth
