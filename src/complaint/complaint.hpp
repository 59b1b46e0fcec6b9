// SPDX-License-Identifier: Apache-2.0
// What programs and loaders print when an image and a machine do not go together: what it means and
// what to do. Pure; a log is hostile text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::complaint {

/// What a complaint says about an end of the program.
enum class Level {
  cause,   ///< where others stand beside it, they follow from it
  effect,  ///< enough for a program to fail
  sign,    ///< a program goes on with it: no reason for a failure
};

/// One way in which a complaint is worded.
struct Row {
  /// "driver.version-mismatch": stable. Several rows may have the same; the first that matches
  /// words it.
  std::string_view id;
  Level level = Level::effect;
  std::vector<std::string_view> patterns;  ///< as match() takes them; one is enough
  std::string_view why;     ///< {1}, {2}, {3}: what the holes have; a half sentence, no period
  std::string_view remedy;  ///< likewise
  /// Of a CUDA error: its numbers, the second one before CUDA 10.1. 0: none.
  uint32_t cuda = 0;
  uint32_t old_cuda = 0;
};
/// All that is known. Specific wordings stand before general ones.
std::span<const Row> rows();

/// The end of a log that is looked at, in bytes.
inline constexpr size_t kMaxLog = size_t{64} << 10;

struct Found {
  std::string_view id;
  Level level = Level::effect;
  std::string why = {};
  std::string remedy = {};
  std::string text = {};  ///< the line, at most 300 bytes
  size_t line = 0;        ///< counted from 1, of what was looked at
};

/// The complaints in the last kMaxLog bytes of `log`, each id once: causes first, then effects,
/// then signs, of each the newest first. Lines of docker's json-file are taken apart.
std::vector<Found> find(std::string_view log);

/// "why: …; try: …", with foreign text made harmless.
std::string to_line(const Found& found);

/// The last bytes of what goes by.
class Tail {
 public:
  void add(std::string_view bytes);
  /// At most kMaxLog bytes.
  std::string_view text() const;

 private:
  std::string bytes_;
};

}  // namespace berth::complaint
