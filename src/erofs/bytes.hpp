// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace berth::erofs {

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The struct's own bytes: those of format.hpp have no gaps.
template <class T>
std::string_view struct_bytes(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
void append_struct(std::string& bytes, const T& value) {
  bytes += struct_bytes(value);
}

/// The CRC32C of a superblock: initialised with all ones, and not inverted at the end.
uint32_t checksum(std::string_view bytes);

}  // namespace berth::erofs
