// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "logs/entry.hpp"

/// The format of the driver `local`, which is Berth's own: a file starts with a LocalKey, followed
/// by frames, each with a header and the bytes of one read(2) as the container wrote them. A header
/// has a checksum, keyed by a number that the container does not know, so that after damage a
/// reader finds the next header, and never mistakes output of the container for a header. Numbers
/// are little-endian. Pure.
namespace berth::logs {

inline constexpr size_t kMaxFrame = size_t{1} << 20;  ///< bytes of one frame
inline constexpr size_t kFrameHeader = 24;
inline constexpr size_t kFileHeader = 16;

struct LocalKey {
  uint64_t number = 0;
};
/// The header of a file: "BRTHLOG1", then the key.
std::array<char, kFileHeader> write_file_header(LocalKey key);
/// The key in the header at the start of `bytes`; nothing if the file does not have this format.
std::optional<LocalKey> read_file_header(std::string_view bytes);

struct Frame {
  Stream stream = Stream::out;
  bool end = false;  ///< the container has ended: the rest of both streams has no newline
  uint32_t size = 0;
  int64_t time_ns = 0;
};
std::array<char, kFrameHeader> write_frame_header(const Frame& frame, LocalKey key);
/// The header at the start of `bytes`; nothing if the first kFrameHeader bytes are not a header.
std::optional<Frame> read_frame_header(std::string_view bytes, LocalKey key);

}  // namespace berth::logs
