// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mpi/symbols.hpp"
#include "scan/elf.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  berth::scan::ReadAt read_at = [bytes](uint64_t offset,
                                        size_t length) -> berth::Result<std::string> {
    if (offset >= bytes.size()) return std::string();
    return std::string(bytes.substr(static_cast<size_t>(offset), length));
  };
  auto elf = berth::scan::read_elf(read_at);
  if (elf.ok()) berth::ignore(berth::mpi::read_symbols(*elf, read_at));
  return 0;
}
