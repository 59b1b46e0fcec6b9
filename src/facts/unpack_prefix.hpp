// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::facts {

/// The first `wanted` decompressed bytes of an LZ4 block (without a frame); fewer if it ends or is
/// invalid. The first `wanted` + 64 bytes of the block are enough.
/// Source: lz4 doc/lz4_Block_format.md
std::string lz4_prefix(std::string_view block, size_t wanted);

/// The first `wanted` decompressed bytes of a zstd frame, which may be truncated; fewer if it ends,
/// is invalid or needs a window of more than 16 MiB. A block (up to 128 KiB) yields bytes only if
/// it is complete.
std::string zstd_prefix(std::string_view frame, size_t wanted);

}  // namespace berth::facts
