// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/checksum.hpp"

#include <isa-l/crc64.h>

namespace berth::transfer {

uint64_t checksum(uint64_t before, std::string_view bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): ISA-L's type of bytes
  return crc64_ecma_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()),
                         bytes.size());
}

}  // namespace berth::transfer
