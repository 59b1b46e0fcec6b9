// SPDX-License-Identifier: Apache-2.0
// Messages of programs and loaders when an image does not fit a machine: their meaning and remedy.
// Pure; a log is hostile text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::known_error {

/// The relation of a known error to the end of the program.
enum class Level {
  cause,   ///< others beside it are its consequences
  effect,  ///< enough for a program to fail
  sign,    ///< the program continues: no reason for a failure
};

/// One wording of a known error.
struct Row {
  /// "driver.version-mismatch": stable. Several rows may share it; the first that matches provides
  /// the texts.
  std::string_view id;
  Level level = Level::effect;
  std::vector<std::string_view> patterns;  ///< in match()'s syntax; one match is enough
  std::string_view why;     ///< {1}, {2}, {3}: the captures; a half sentence, no period
  std::string_view remedy;  ///< likewise
  /// For a CUDA error: its numbers, the second one before CUDA 10.1. 0: none.
  uint32_t cuda = 0;
  uint32_t old_cuda = 0;
};
/// All known known errors, specific wordings before general ones.
std::span<const Row> rows();

/// Only the end of a log is read; its size in bytes.
inline constexpr size_t kMaxLog = size_t{64} << 10;

struct Found {
  std::string_view id;
  Level level = Level::effect;
  std::string why = {};
  std::string remedy = {};
  std::string text = {};  ///< the line, at most 300 bytes
  size_t line = 0;        ///< counted from 1, in the part that is read
};

/// The known errors in the last kMaxLog bytes of `log`, each id once: causes first, then effects,
/// then signs; within each the newest first. Decodes lines of docker's json-file.
std::vector<Found> find(std::string_view log);

/// "why: …; try: …", with foreign text escaped.
std::string to_line(const Found& found);

/// Keeps the last bytes of a stream.
class Tail {
 public:
  void add(std::string_view bytes);
  /// At most kMaxLog bytes.
  std::string_view text() const;

 private:
  std::string bytes_;
};

}  // namespace berth::known_error
