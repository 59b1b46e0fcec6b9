// SPDX-License-Identifier: Apache-2.0
#include "scan/mpi.hpp"

#include <array>
#include <utility>

namespace berth::scan {

std::string_view mpi_family(std::string_view soname) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kFamilies = {{
      {"libmpi.so.12", "mpich"},
      {"libmpich.so.12", "mpich"},
      {"libmpi_cray.so.12", "mpich"},
      {"libmpi_gnu.so.12", "mpich"},
      {"libmpi_intel.so.12", "mpich"},
      {"libmpi.so.40", "openmpi"},
      {"libmpi.so.20", "openmpi"},
      {"libmpi.so.1", "openmpi"},
      {"libmpi_abi.so.0", "mpi-abi"},
  }};
  for (const auto& [name, family] : kFamilies) {
    if (name == soname) return family;
  }
  return {};
}

}  // namespace berth::scan
