// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace berth::transfer {

/// A running CRC-64 (ECMA-182, reflected; ISA-L, so with the processor's carry-less
/// multiplication): detects changes by a disk, a mistake or a power cut, at a twentieth of the cost
/// of SHA-256. It is no protection against a process that can write the store.
uint64_t checksum(uint64_t before, std::string_view bytes);

}  // namespace berth::transfer
