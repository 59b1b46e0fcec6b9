// SPDX-License-Identifier: Apache-2.0
#include "known_error/pattern.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::known_error {
namespace {

constexpr size_t kMaxText = 200;
constexpr size_t kMaxSkipped = 500;
constexpr size_t kMaxWord = 256;
constexpr size_t kMaxDigits = 10;
constexpr size_t kMaxVersion = 32;
/// How often the first literal may be found in a line without a match of the rest of the pattern.
constexpr size_t kMaxTries = 32;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z');
}

bool is_blank(char c) {
  return static_cast<unsigned char>(c) <= ' ';
}

/// The number of bytes at the front of `text` that the hole `kind` takes.
size_t length_of(char kind, std::string_view text) {
  auto count = [&](size_t most, auto belongs) {
    size_t length = 0;
    while (length < std::min(most, text.size()) && belongs(text[length])) ++length;
    return length;
  };
  if (kind == 'n') return count(kMaxDigits, is_digit);
  if (kind == 'v') {
    size_t length = count(kMaxVersion, [](char c) { return is_digit(c) || c == '.'; });
    while (length > 0 && text[length - 1] == '.') --length;
    return length > 0 && is_digit(text[0]) ? length : 0;
  }
  return count(kMaxWord, [](char c) {
    return !is_blank(c) && std::string_view("'\"`,()[];\\").find(c) == std::string_view::npos;
  });
}

/// Matches the rest of a pattern, after its first literal, at one place of a line.
class Rest {
 public:
  Rest(std::string_view pattern, const Line& line) : pattern_(pattern), line_(line) {}

  bool matches(size_t at) {
    at_ = at;
    while (!pattern_.empty()) {
      bool hole = pattern_.size() >= 3 && pattern_[0] == '{' && pattern_[2] == '}';
      if (!(hole ? take_hole() : take_literal())) return false;
    }
    return true;
  }
  /// Stores the capture of a hole before the literal.
  void hold(std::string_view before) { captures_[count_++] = before; }
  size_t end() const { return at_; }
  const Captures& captures() const { return captures_; }

 private:
  std::string_view literal() const { return pattern_.substr(0, pattern_.find('{')); }

  bool take_literal() {
    std::string_view wanted = literal();
    if (wanted.ends_with('$')) {
      wanted.remove_suffix(1);
      if (line_.lower.size() != at_ + wanted.size()) return false;
    }
    if (line_.lower.compare(at_, wanted.size(), wanted) != 0) return false;
    at_ += wanted.size();
    pattern_.remove_prefix(literal().size());
    return true;
  }

  bool take_hole() {
    char kind = pattern_[1];
    pattern_.remove_prefix(3);
    size_t length = 0;
    if (kind == 't' || kind == '*') {
      size_t most = kind == 't' ? kMaxText : kMaxSkipped;
      std::string_view next = literal();
      std::string_view room = std::string_view(line_.lower).substr(at_);
      if (next.empty() || next == "$") {
        length = std::min(most, room.size());
      } else {
        length = room.substr(0, most + next.size()).find(next);
        if (length == std::string_view::npos) return false;
      }
      if (kind == '*') {
        at_ += length;
        return true;
      }
    } else {
      length = length_of(kind, std::string_view(line_.lower).substr(at_));
      // "libA.so: not found": the colon does not belong to the word.
      while (kind == 'w' && length > 0 && line_.lower[at_ + length - 1] == ':') --length;
    }
    if (length == 0 || count_ == kMaxHoles) return false;
    captures_[count_++] = std::string_view(line_.text).substr(at_, length);
    at_ += length;
    return true;
  }

  std::string_view pattern_;
  const Line& line_;
  size_t at_ = 0;
  Captures captures_;
  size_t count_ = 0;
};

/// Whether position `left` is inside of a word.
bool is_cut(const std::string& text, size_t left) {
  return left > 0 && left < text.size() && is_letter(text[left - 1]) && is_letter(text[left]);
}

/// The bytes of an escape sequence at the front of `text`, which begins with ESC (ECMA-48 5.4).
size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[1] != '[') return std::min<size_t>(text.size(), 2);
  size_t length = 2;
  while (length < text.size() && text[length] >= 0x20 && text[length] < 0x40) ++length;
  return std::min(text.size(), length + 1);
}

/// How many bytes at the end of `before` the hole before the first literal takes.
size_t reach_back(char kind, std::string_view before) {
  if (kind == 't') return std::min(kMaxText, before.size());
  size_t length = 0;
  while (length < std::min(kMaxWord, before.size()) &&
         length_of(kind, before.substr(before.size() - length - 1, 1)) == 1) {
    ++length;
  }
  return length;
}

}  // namespace

Line line_of(std::string_view raw) {
  Line line;
  line.text.reserve(raw.size());
  while (!raw.empty()) {
    if (raw[0] == '\x1b') {
      raw.remove_prefix(escape_length(raw));
      continue;
    }
    bool blank = is_blank(raw[0]);
    if (!blank) line.text += raw[0];
    if (blank && !line.text.empty() && line.text.back() != ' ') line.text += ' ';
    raw.remove_prefix(1);
  }
  if (line.text.ends_with(' ')) line.text.pop_back();
  line.lower = to_lower(line.text);
  return line;
}

std::string_view anchor(std::string_view pattern) {
  if (pattern.starts_with('^')) pattern.remove_prefix(1);
  if (pattern.starts_with('{')) pattern.remove_prefix(3);
  std::string_view first = pattern.substr(0, pattern.find('{'));
  if (first.ends_with('$')) first.remove_suffix(1);
  return first;
}

std::optional<Captures> match(std::string_view pattern, const Line& line) {
  bool from_start = pattern.starts_with('^');
  if (from_start) pattern.remove_prefix(1);
  char before = 0;
  if (pattern.starts_with('{')) {
    before = pattern[1];
    pattern.remove_prefix(3);
  }
  std::string_view first = anchor(pattern);
  size_t from = 0;
  for (size_t tries = 0; tries < kMaxTries; ++tries) {
    size_t at = from_start && before == 0 ? 0 : line.lower.find(first, from);
    if (at == std::string::npos) return std::nullopt;
    Rest rest(pattern, line);
    std::string_view held;
    if (before != 0) {
      size_t length = reach_back(before, std::string_view(line.lower).substr(0, at));
      held = std::string_view(line.text).substr(at - length, length);
      if (from_start && length != at) held = {};
      if (!held.empty()) rest.hold(held);
    }
    bool begins = before != 0 ? !held.empty() : !is_cut(line.lower, at);
    if (begins && rest.matches(at) && !is_cut(line.lower, rest.end())) return rest.captures();
    if (from_start && before == 0) return std::nullopt;
    from = at + 1;
  }
  return std::nullopt;
}

}  // namespace berth::known_error
