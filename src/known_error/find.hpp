// SPDX-License-Identifier: Apache-2.0
// Recognises messages that programs and loaders print when an image does not fit a machine, and
// explains them. Pure. A log is hostile text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::known_error {

/// What a known error has to do with the end of the program.
enum class Level {
  cause,   ///< other known errors found with it are consequences
  effect,  ///< enough to make a program fail
  sign,    ///< programs continue after it: not the reason for a failure
};

/// One wording of a known error.
struct Row {
  /// "driver.version-mismatch": stable. Several rows may share an id; the first row that matches
  /// provides the texts.
  std::string_view id;
  Level level = Level::effect;
  std::vector<std::string_view> patterns;  ///< in match()'s syntax; one match is enough
  std::string_view why;                    ///< {1}, {2}, {3}: the captures; no period at the end
  std::string_view remedy;                 ///< in the same form
  /// For a CUDA error: its number, and the number it had before CUDA 10.1. 0: none.
  uint32_t cuda = 0;
  uint32_t old_cuda = 0;
};
/// All known errors, specific wordings before general ones.
std::span<const Row> rows();

/// The number of bytes that are read at the end of a log.
inline constexpr size_t kMaxLog = size_t{64} << 10;

struct Found {
  std::string_view id;
  Level level = Level::effect;
  std::string why = {};
  std::string remedy = {};
  std::string text = {};  ///< the line of the log, at most 300 bytes
  size_t line = 0;        ///< number of that line, from 1, in the part that is read
};

/// The known errors in the last kMaxLog bytes of `log`, each id once: causes first, then effects,
/// then signs, the newest first within each level. Decodes lines in docker's json-file format.
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
