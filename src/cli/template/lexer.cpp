// SPDX-License-Identifier: Apache-2.0
#include "cli/template/lexer.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "base/text.hpp"

namespace berth::cli::syntax {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_blank(char c) {
  return kBlanks.find(c) != kBlanks.npos;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// Bytes of characters beyond ASCII count as letters.
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

void append_utf8(std::string& out, uint32_t point) {
  auto byte = [&out](uint32_t value) { out += static_cast<char>(value); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0 | point >> 6);
    byte(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    byte(0xE0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  } else {
    byte(0xF0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3F));
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  }
}

/// The first code point of UTF-8 `text`. An invalid byte counts as a code point of its own.
uint32_t first_point(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  auto follows = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  uint32_t first = byte(0);
  if (first >= 0xF0 && follows(1) && follows(2) && follows(3)) {
    return (first & 7) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
  if (first >= 0xE0 && follows(1) && follows(2)) {
    return (first & 15) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  }
  if (first >= 0xC0 && follows(1)) return (first & 31) << 6 | (byte(1) & 0x3F);
  return first;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> read() {
    while (at_ < text_.size()) {
      bool trimmed = trim_next_;
      trim_next_ = false;
      size_t open = text_.find("{{", at_);
      add_text(text_.substr(at_, open == text_.npos ? open : open - at_), trimmed,
               open != text_.npos && trims_before(open));
      advance(open == text_.npos ? text_.size() : open);
      if (at_ < text_.size()) TRY(read_action());
    }
    tokens_.push_back({TokenKind::end_of_text, "", place(), false, 0, 0});
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  Place place() const { return {line_, static_cast<uint32_t>(at_ - line_start_ + 1)}; }

  void advance(size_t to) {
    for (; at_ < to; ++at_) {
      if (text_[at_] != '\n') continue;
      ++line_;
      line_start_ = at_ + 1;
    }
  }

  bool trims_before(size_t open) const {
    return open + 3 < text_.size() && text_[open + 2] == '-' && is_blank(text_[open + 3]);
  }
  /// At " -}}" or "\t-}}".
  bool trims_after() const { return is_blank(peek()) && text_.substr(at_ + 1).starts_with("-}}"); }

  void add_text(std::string_view text, bool trim_left, bool trim_right) {
    if (trim_left) text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (trim_right) text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    if (!text.empty()) add(TokenKind::text, std::string(text), place());
  }

  void add(TokenKind kind, std::string text, Place where) {
    tokens_.push_back({kind, std::move(text), where, blank_, 0, 0});
    blank_ = false;
  }

  void skip_close() {
    if (is_blank(peek())) {
      trim_next_ = true;
      advance(at_ + 2);
    }
    advance(at_ + 2);
  }

  Result<void> read_action() {
    Place begin = place();
    advance(at_ + (trims_before(at_) ? 3 : 2));
    size_t inside = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
    if (text_.substr(inside).starts_with("/*")) return skip_comment(begin, inside);
    blank_ = false;
    add(TokenKind::open, "", begin);
    while (true) {
      if (trims_after() || starts("}}")) {
        Place where = place();
        skip_close();
        add(TokenKind::close, "", where);
        return {};
      }
      if (at_ >= text_.size()) return error_at(begin, "'{{' without its '}}'");
      if (is_blank(peek())) {
        blank_ = true;
        advance(at_ + 1);
        continue;
      }
      TRY(read_token());
    }
  }

  Result<void> skip_comment(Place begin, size_t inside) {
    size_t end = text_.find("*/", inside + 2);
    if (end == text_.npos) return error_at(begin, "'/*' without its '*/'");
    advance(end + 2);
    if (!trims_after() && !starts("}}")) return error_at(place(), "a comment ends in '*/}}'");
    skip_close();
    return {};
  }

  Result<void> read_token() {
    Place where = place();
    char c = peek();
    if (starts(":=")) return single(TokenKind::declare, 2);
    if (c == '=') return single(TokenKind::assign, 1);
    if (c == '|') return single(TokenKind::pipe, 1);
    if (c == '(') return single(TokenKind::left, 1);
    if (c == ')') return single(TokenKind::right, 1);
    if (c == ',') return single(TokenKind::comma, 1);
    if (c == '"' || c == '\'') return read_quoted(c, where);
    if (c == '`') return read_raw(where);
    bool sign = c == '+' || c == '-';
    if (is_digit(c) || ((sign || c == '.') && is_digit(peek(1))) ||
        (sign && peek(1) == '.' && is_digit(peek(2)))) {
      return read_number(where);
    }
    if (c == '.' && !is_name(peek(1))) return single(TokenKind::dot, 1);
    if (c == '.' || c == '$' || is_name(c)) {
      size_t end = at_ + 1;
      while (end < text_.size() && is_name(text_[end])) ++end;
      std::string word(text_.substr(at_, end - at_));
      advance(end);
      TokenKind kind = c == '.'   ? TokenKind::field
                       : c == '$' ? TokenKind::variable
                                  : TokenKind::word;
      if (c == '.') word.erase(0, 1);
      add(kind, std::move(word), where);
      return {};
    }
    return error_at(where, "unexpected " + quote(text_.substr(at_, 1)));
  }

  Result<void> single(TokenKind kind, size_t length) {
    Place where = place();
    std::string word(text_.substr(at_, length));
    advance(at_ + length);
    add(kind, std::move(word), where);
    return {};
  }

  Result<void> read_raw(Place where) {
    size_t end = text_.find('`', at_ + 1);
    if (end == text_.npos) return error_at(where, "'`' without its end");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    advance(end + 1);
    add(TokenKind::string, std::move(word), where);
    return {};
  }

  Result<void> read_quoted(char mark, Place where) {
    Error open = error_at(
        where, mark == '"' ? "a string without its end" : "a character constant without its end");
    std::string meaning;
    advance(at_ + 1);
    while (true) {
      char c = peek();
      if (at_ >= text_.size() || c == '\n') return open;
      if (c == mark) break;
      if (c == '\\') {
        TRY(read_escape(meaning, mark));
        continue;
      }
      meaning += c;
      advance(at_ + 1);
    }
    advance(at_ + 1);
    if (mark == '"') {
      add(TokenKind::string, std::move(meaning), where);
      return {};
    }
    uint32_t point = meaning.empty() ? 0 : first_point(meaning);
    std::string again;
    append_utf8(again, point);
    if (meaning.empty() || (again != meaning && meaning.size() != 1)) {
      return error_at(where, "a character constant holds one character; strings stand in '\"'");
    }
    add(TokenKind::integer, std::move(meaning), where);
    tokens_.back().integer = point;
    return {};
  }

  /// Go's escapes: \n, \x41, \101, \u00e9, \U0001F600.
  Result<void> read_escape(std::string& meaning, char mark) {
    Place where = place();
    char c = peek(1);
    constexpr std::string_view kLetters = "abfnrtv\\";
    constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\";
    if (size_t i = kLetters.find(c); i != kLetters.npos) {
      meaning += kMeanings[i];
      advance(at_ + 2);
      return {};
    }
    if (c == mark) {
      meaning += c;
      advance(at_ + 2);
      return {};
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : c >= '0' && c <= '7' ? 3 : 0;
    size_t begin = at_ + (digits == 3 ? 1 : 2);
    std::string_view number = text_.substr(std::min(begin, text_.size()), digits);
    uint32_t value = 0;
    auto [end, failure] =
        std::from_chars(number.data(), number.data() + number.size(), value, digits == 3 ? 8 : 16);
    bool whole = digits > 0 && number.size() == digits && failure == std::errc{} &&
                 end == number.data() + number.size();
    bool surrogate = value >= 0xD800 && value < 0xE000;
    if (!whole || value > 0x10FFFF || surrogate || (digits == 3 && value > 255)) {
      return error_at(where, "unknown escape " + quote(text_.substr(at_, 2)));
    }
    if (digits > 3) {
      append_utf8(meaning, value);
    } else {
      meaning += static_cast<char>(value);
    }
    advance(begin + digits);
    return {};
  }

  Result<void> read_number(Place where) {
    size_t end = at_ + 1;
    // A sign is part of a number at its beginning and after the letter of its exponent.
    auto exponent = [&](size_t i) {
      char before = text_[i - 1];
      bool hex = text_.substr(at_, 3).find_first_of("xX") != text_.npos;
      return !hex && (before == 'e' || before == 'E');
    };
    while (end < text_.size() && (is_name(text_[end]) || text_[end] == '.' ||
                                  ((text_[end] == '+' || text_[end] == '-') && exponent(end)))) {
      ++end;
    }
    std::string word(text_.substr(at_, end - at_));
    advance(end);
    add(TokenKind::integer, word, where);
    Token& token = tokens_.back();
    if (auto integer = parse_integer(word)) {
      token.integer = *integer;
      return {};
    }
    char* stop = nullptr;
    // Accepts only digits, point, sign and exponent: strtod() would also accept "inf", "nan" and
    // "0x1p3".
    bool plain = word.find_first_not_of("0123456789.eE+-") == word.npos;
    double real = plain ? std::strtod(word.c_str(), &stop) : 0;
    bool point = word.find_first_of(".eE") != word.npos;
    if (!plain || !point || *stop != '\0' || real > 1e308 || real < -1e308) {
      return error_at(where, "not a number: " + quote(word));
    }
    token.kind = TokenKind::real;
    token.real = real;
    return {};
  }

  /// Go's integers: 12, 1_000, 0x1F, 0b11, 0o17, 017.
  static std::optional<int64_t> parse_integer(std::string_view word) {
    bool negative = word.starts_with('-');
    if (negative || word.starts_with('+')) word.remove_prefix(1);
    int base = 10;
    if (word.size() > 2 && word[0] == '0') {
      char kind = static_cast<char>(word[1] | 0x20);
      base = kind == 'x' ? 16 : kind == 'b' ? 2 : kind == 'o' ? 8 : 10;
    }
    std::string digits(word.substr(base == 10 ? 0 : 2));
    if (base == 10 && digits.size() > 1 && digits[0] == '0') base = 8;
    if (digits.ends_with('_') || digits.find("__") != digits.npos) return std::nullopt;
    std::erase(digits, '_');
    uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    auto [last, failure] = std::from_chars(digits.data(), end, value, base);
    uint64_t limit = uint64_t{INT64_MAX} + (negative ? 1 : 0);
    if (digits.empty() || failure != std::errc{} || last != end || value > limit) {
      return std::nullopt;
    }
    return static_cast<int64_t>(negative ? 0 - value : value);
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  size_t line_start_ = 0;
  bool trim_next_ = false;  ///< the last action ended in " -}}"
  bool blank_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

Error error_at(Place place, const std::string& text) {
  std::string line = place.line == 1 ? "" : " line " + std::to_string(place.line) + ",";
  return make_error(Kind::usage,
                    "template," + line + " column " + std::to_string(place.column) + ": " + text);
}

Result<std::vector<Token>> read_tokens(std::string_view text) {
  return Lexer(text).read();
}

}  // namespace berth::cli::syntax
