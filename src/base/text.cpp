// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>

namespace berth {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  auto [last, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc{} || last != end || text.empty()) return std::nullopt;
  return number;
}

/// Insertions, deletions, replacements and swaps of neighbours, each counted once.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j + 1] + 1, next[j] + 1, row[j] + (a[i] == b[j] ? 0 : 1)});
      bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row.back();
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_blank(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    size_t end = std::min(text.find_first_of(kBlanks), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const auto& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_below(std::string_view path, std::string_view directory) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || path[directory.size()] == '/';
}

std::optional<uint64_t> parse_u64(std::string_view text) {
  return parse_whole<uint64_t>(text);
}

std::optional<int64_t> parse_i64(std::string_view text) {
  return parse_whole<int64_t>(text);
}

std::optional<double> parse_decimal(std::string_view text) {
  size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  digits += fraction;
  if (digits.empty() || digits.size() > 18) return std::nullopt;  // 18 digits fit into 64 bits
  int64_t whole = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    whole = whole * 10 + (c - '0');
  }
  double scale = 1;
  for (size_t i = 0; i < fraction.size(); ++i) scale *= 10;
  return static_cast<double>(whole) / scale;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  size_t digits = text.find_first_not_of("0123456789.");
  std::string unit = to_lower(digits == std::string_view::npos ? "" : text.substr(digits));
  std::string_view number = text.substr(0, digits);
  auto value = parse_decimal(number);
  if (!value) return std::nullopt;

  constexpr std::string_view kUnits = "bkmgtp";
  double factor = 1;
  if (!unit.empty()) {
    size_t power = kUnits.find(unit[0]);
    std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos) return std::nullopt;
    if (!rest.empty() && (power == 0 || (rest != "b" && rest != "ib"))) return std::nullopt;
    factor = static_cast<double>(uint64_t{1} << (10 * power));
  }
  double bytes = *value * factor;
  if (!(bytes >= 0) || bytes >= 9.2e18) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%s", value, kUnits[unit].data());
  return text;
}

namespace {

/// The length in bytes of the UTF-8 sequence at the start of `text`; 0: there is none. RFC 3629
size_t sequence_length(std::string_view text) {
  auto first = static_cast<unsigned char>(text.front());
  size_t length = first < 0x80                    ? 1
                  : first >= 0xC2 && first < 0xE0 ? 2
                  : first >= 0xE0 && first < 0xF0 ? 3
                  : first >= 0xF0 && first < 0xF5 ? 4
                                                  : 0;
  if (length > text.size()) return 0;
  if (length > 2) {
    auto second = static_cast<unsigned char>(text[1]);
    bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
    if (overlong || outside) return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

/// Whether a terminal would interpret `sequence` as a control, in UTF-8 (C2 80 … C2 9F) or as an
/// 8-bit terminal.
bool is_control(std::string_view sequence) {
  auto byte = static_cast<unsigned char>(sequence.back());
  bool c1 = byte >= 0x80 && byte < 0xA0;
  if (sequence.size() == 1) return byte < 0x20 || byte == 0x7F || c1;
  return sequence.size() == 2 && sequence.front() == '\xC2' && c1;
}

}  // namespace

std::string escape_controls(std::string_view text, Lines lines) {
  bool plain = std::ranges::none_of(text, [](char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x7F;
  });
  if (plain) return std::string(text);
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    std::string_view sequence = text.substr(0, std::max<size_t>(1, sequence_length(text)));
    text.remove_prefix(sequence.size());
    char byte = sequence.back();
    if (!is_control(sequence) || (lines == Lines::kept && (byte == '\n' || byte == '\t'))) {
      safe += sequence;
    } else if (byte == '\n' || byte == '\t') {
      safe += byte == '\n' ? "\\n" : "\\t";
    } else {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(byte));
      safe += hex;
    }
  }
  return safe;
}

std::string quote(std::string_view text) {
  return "'" + escape_controls(text) + "'";
}

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<std::string_view> nearest(std::string_view word,
                                        const std::vector<std::string_view>& candidates) {
  std::optional<std::string_view> best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string octal(uint32_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) text += static_cast<char>('0' + (mode >> shift & 7));
  return text;
}

}  // namespace berth
