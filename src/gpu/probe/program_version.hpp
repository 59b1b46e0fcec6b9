// SPDX-License-Identifier: Apache-2.0
// Of which driver a program is: its name does not say so, but NVIDIA's programs have the version in
// their text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::gpu {

/// The versions of drivers in a program's bytes, each once, in their order: words like "390.157" or
/// "550.163.01". Bytes of any form are allowed.
std::vector<std::string> driver_versions_in(std::string_view bytes);

/// Whether a program of this name comes with the driver and has its version in its text. Others
/// (nvidia-persistenced, nvidia-xconfig) are also distributed on their own, with another version.
bool names_its_driver(std::string_view program);

}  // namespace berth::gpu
