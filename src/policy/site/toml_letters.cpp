// SPDX-License-Identifier: Apache-2.0
#include "policy/site/toml_letters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace berth::policy {
namespace {

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

/// A character: its code point and its number of bytes.
struct Letter {
  uint32_t number = 0;
  size_t bytes = 0;
};

/// The character at the front of `text`. It has zero bytes if the UTF-8 is invalid, which toml++
/// refuses.
Letter letter_at(std::string_view text) {
  auto first = static_cast<unsigned char>(text.front());
  size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  uint32_t number = first & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) return {};
    number = number << 6 | (next & 0x3fU);
  }
  return {number, bytes};
}

/// Scans the document once. Reports only the faults that toml++ cannot report. Up to the first
/// fault that toml++ finds, both agree on what is a string.
class Speller {
 public:
  Speller(std::string_view text, std::string_view document) : rest_(text), document_(document) {}

  Result<std::string> spell() {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (rest_.starts_with(kByteOrderMark)) take(kByteOrderMark.size());
    while (!rest_.empty()) {
      char c = rest_.front();
      if (!is_ascii(c)) return wrong("is outside of quotes");
      if (c == '#') {
        take(std::min(rest_.find('\n'), rest_.size()));
      } else if (c == '"' || c == '\'') {
        TRY(text(c));
      } else {
        take(1);
      }
    }
    return std::move(out_);
  }

 private:
  void take(size_t count) {
    auto taken = rest_.substr(0, count);
    line_ += static_cast<uint32_t>(std::ranges::count(taken, '\n'));
    out_ += taken;
    rest_.remove_prefix(taken.size());
  }

  Error wrong(std::string_view how) const {
    return make_error(Kind::corrupt,
                      fmt::format("{}:{}: a letter that is not ASCII {}", document_, line_, how));
  }

  /// Scans a string in quotes of the kind `c`, up to its end or the end of its line.
  Result<void> text(char c) {
    std::string mark(rest_.starts_with(std::string(3, c)) ? 3 : 1, c);
    bool has_lines = mark.size() == 3;
    take(mark.size());
    while (!rest_.empty()) {
      if (rest_.starts_with(mark)) {
        take(mark.size());
        // Up to two more quotes belong to a string in triple quotes.
        for (int i = 0; has_lines && i < 2 && rest_.starts_with(c); ++i) take(1);
        return {};
      }
      if (rest_.front() == '\n' && !has_lines) return {};
      bool is_escape = rest_.front() == '\\' && c == '"';
      take(1);
      if (is_escape) TRY(escape(has_lines));
    }
    return {};
  }

  /// Scans what follows a backslash.
  Result<void> escape(bool has_lines) {
    if (rest_.empty()) return {};
    if (!is_ascii(rest_.front())) return wrong("is behind a backslash");
    size_t blank = std::min(rest_.find_first_not_of(" \t\r\n\v\f"), rest_.size());
    if (blank == 0) {
      take(1);
    } else if (has_lines) {
      take(blank);
      Letter letter = rest_.empty() ? Letter() : letter_at(rest_);
      if (letter.bytes == 0) return {};
      out_ += fmt::format("\\U{:08X}", letter.number);
      rest_.remove_prefix(letter.bytes);
    }
    return {};
  }

  std::string_view rest_;
  std::string_view document_;
  std::string out_;
  uint32_t line_ = 1;
};

}  // namespace

Result<std::string> spell_letters(std::string_view text, std::string_view document) {
  return Speller(text, document).spell();
}

}  // namespace berth::policy
