// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace berth::transfer {

/// A running CRC-64 (ECMA-182, reflected; ISA-L, so with the processor's carry-less
/// multiplication): finds what a disk, a slip or a power cut has changed, at a twentieth of what a
/// SHA-256 costs. It proves nothing against whoever may write the store.
uint64_t checksum(uint64_t before, std::string_view bytes);

}  // namespace berth::transfer
