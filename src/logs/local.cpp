// SPDX-License-Identifier: Apache-2.0
#include "logs/local.hpp"

#include <cstring>

namespace berth::logs {
namespace {

constexpr std::string_view kFileMagic = "BRTHLOG1";
constexpr std::string_view kFrameMagic = "\xb7\x1f";
constexpr uint8_t kEnd = 2;  // a flag, combined with the number of the stream

// A header in bytes: magic 2, kind 1, zero 1, size 4, time 8, checksum 8.

void put(char* to, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<char>(value >> (8 * i));
}

uint64_t get(const char* from, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  }
  return value;
}

/// The mixing function of splitmix64: every input bit changes half of the output bits on average.
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

uint64_t check_of(const char* header, LocalKey key) {
  return mix(mix(mix(key.number) ^ get(header, 8)) ^ get(header + 8, 8));
}

}  // namespace

std::array<char, kFileHeader> write_file_header(LocalKey key) {
  std::array<char, kFileHeader> bytes;
  std::memcpy(bytes.data(), kFileMagic.data(), kFileMagic.size());
  put(bytes.data() + 8, key.number, 8);
  return bytes;
}

std::optional<LocalKey> read_file_header(std::string_view bytes) {
  if (bytes.size() < kFileHeader || !bytes.starts_with(kFileMagic)) return std::nullopt;
  return LocalKey{get(bytes.data() + 8, 8)};
}

std::array<char, kFrameHeader> write_frame_header(const Frame& frame, LocalKey key) {
  std::array<char, kFrameHeader> bytes;
  std::memcpy(bytes.data(), kFrameMagic.data(), kFrameMagic.size());
  auto kind = static_cast<uint8_t>(frame.stream == Stream::error ? 1 : 0);
  put(bytes.data() + 2, frame.end ? kEnd : kind, 1);
  put(bytes.data() + 3, 0, 1);
  put(bytes.data() + 4, frame.size, 4);
  put(bytes.data() + 8, static_cast<uint64_t>(frame.time_ns), 8);
  put(bytes.data() + 16, check_of(bytes.data(), key), 8);
  return bytes;
}

std::optional<Frame> read_frame_header(std::string_view bytes, LocalKey key) {
  if (bytes.size() < kFrameHeader || !bytes.starts_with(kFrameMagic)) return std::nullopt;
  const char* from = bytes.data();
  if (get(from + 16, 8) != check_of(from, key)) return std::nullopt;
  uint64_t kind = get(from + 2, 1);
  Frame frame{kind == 1 ? Stream::error : Stream::out, kind == kEnd,
              static_cast<uint32_t>(get(from + 4, 4)), static_cast<int64_t>(get(from + 8, 8))};
  if (kind > kEnd || from[3] != 0 || frame.size > kMaxFrame) return std::nullopt;
  if (frame.end != (frame.size == 0)) return std::nullopt;
  return frame;
}

}  // namespace berth::logs
