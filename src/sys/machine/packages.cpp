// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/packages.hpp"

#include "base/packages.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {

std::string how_to_install(std::string_view package) {
  constexpr size_t kMost = size_t{64} << 10;
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    auto text = read_file(cwd(), path, kMost);
    if (text.ok()) return install_command(package, *text);
  }
  return install_command(package, "");
}

}  // namespace berth::sys
