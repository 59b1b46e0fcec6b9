// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// Splits at every `separator`; "a,,b" gives three parts, "" gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Splits at runs of blanks (space, tab, newline); no empty parts.
std::vector<std::string_view> split_blank(std::string_view text);

// The parts are views, so a temporary string is rejected.
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> split(Temporary&& text, char separator) = delete;
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> split_blank(Temporary&& text) = delete;

std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string to_lower(std::string_view text);

/// Whether an absolute path is `directory` or below it, comparing only the strings; a slash at the
/// end of `directory` is ignored.
bool is_below(std::string_view path, std::string_view directory);

/// The whole string as an unsigned decimal number; nothing for signs, blanks, overflow or "".
std::optional<uint64_t> parse_u64(std::string_view text);
std::optional<int64_t> parse_i64(std::string_view text);

/// "1.5", "2", ".5": at most 18 digits, without sign and exponent. (std::from_chars would link
/// libm, which every start would have to load.)
std::optional<double> parse_decimal(std::string_view text);

/// "512m", "1.5g", "64k", "100" → bytes (powers of 1024, as in docker); b, k, m, g, t, p with an
/// optional trailing "b" or "ib", any case.
std::optional<uint64_t> parse_bytes(std::string_view text);

/// Bytes for people in powers of 1000 with at most three digits: "206MB", "5.1GB", as in docker
/// images.
std::string human_bytes(uint64_t bytes);

/// `kept`: newlines and tabs stay, for strings of several lines.
enum class Lines { escaped, kept };
/// Escapes control characters, DEL and C1 controls, also those of 8-bit terminals, as \n, \t or
/// \xNN, so that a foreign string cannot move the cursor or begin a new line. UTF-8 sequences stay.
std::string escape_controls(std::string_view text, Lines lines = Lines::escaped);

/// The string in single quotes for an error line, with controls escaped: 'name'.
std::string quote(std::string_view text);

std::string to_hex(std::string_view bytes);

/// The entry of `candidates` nearest to `word` by edit distance, if `word` is a likely misspelling.
std::optional<std::string_view> nearest(std::string_view word,
                                        const std::vector<std::string_view>& candidates);

/// The lowest twelve bits of a file mode in chmod(1)'s notation: "0644".
std::string octal(uint32_t mode);

}  // namespace berth
