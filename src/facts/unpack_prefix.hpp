// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::facts {

/// The first `wanted` bytes of what a block of LZ4 (without a frame) holds; fewer where it ends or
/// makes no sense. `wanted` and some 64 bytes of it are enough.
/// Source: lz4 doc/lz4_Block_format.md
std::string lz4_prefix(std::string_view block, size_t wanted);

/// Of one zstd frame that may lack its end; fewer where it ends, makes no sense or asks for a
/// window of more than 16 MiB. A block of up to 128 KiB has to be there whole before it gives any.
std::string zstd_prefix(std::string_view frame, size_t wanted);

}  // namespace berth::facts
