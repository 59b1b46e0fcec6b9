// SPDX-License-Identifier: Apache-2.0
#include "scan/elf.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  berth::ignore(berth::scan::read_elf(std::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
