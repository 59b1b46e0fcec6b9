// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::facts {

/// The first `wanted` decompressed bytes of an LZ4 block (without a frame); fewer if it ends or is
/// invalid. `wanted` and some 64 bytes of it are enough.
/// Source: lz4 doc/lz4_Block_format.md
std::string lz4_prefix(std::string_view block, size_t wanted);

/// The same for a zstd frame, possibly truncated; fewer if it ends, is invalid or needs a window of
/// more than 16 MiB. A block of up to 128 KiB has to be complete before it yields any.
std::string zstd_prefix(std::string_view frame, size_t wanted);

}  // namespace berth::facts
