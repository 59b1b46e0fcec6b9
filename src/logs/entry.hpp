// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// The output of a container, in files: `log`, and after rotations `log.1` (the newest of the old
/// files), `log.2`, …
namespace berth::logs {

inline constexpr const char* kLogFile = "log";

/// Docker's limit for one entry of a log.
inline constexpr size_t kMaxPiece = 16384;

enum class Stream : uint8_t { out, error };

/// A line with its newline, or at most kMaxPiece bytes of a longer line, recognisable by the
/// missing newline.
struct Entry {
  Stream stream = Stream::out;
  int64_t time_ns = 0;  ///< since 1970: when the end of the entry arrived
  std::string text;
};

/// The format of the files.
enum class Format {
  json_file,  ///< docker's: one JSON object for each entry
  local,      ///< Berth's: the bytes as written (local.hpp)
};

}  // namespace berth::logs
