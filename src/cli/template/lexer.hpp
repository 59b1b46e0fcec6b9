// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// The tokens of a template. Pure.
namespace berth::cli::syntax {

/// A position in a template; both count from 1, columns in bytes.
struct Place {
  uint32_t line = 1;
  uint32_t column = 1;
};

/// "template, column 3: …", with the line number if the template has several lines.
Error error_at(Place place, const std::string& text);

enum class TokenKind {
  text,        ///< outside of actions
  open,        ///< "{{"
  close,       ///< "}}"
  word,        ///< a keyword, true, false, nil or a function
  field,       ///< ".Name"; `text` is "Name"
  dot,         ///< "." alone
  variable,    ///< "$name"; `text` has the dollar
  integer,     ///< also a character constant
  real,        ///< with a point or an exponent
  string,      ///< `text` is its value
  pipe,        ///< "|"
  left,        ///< "("
  right,       ///< ")"
  comma,       ///< ","
  declare,     ///< ":="
  assign,      ///< "="
  end_of_text  ///< always the last token
};

struct Token {
  TokenKind kind = TokenKind::end_of_text;
  std::string text;
  Place place;
  bool after_blank = false;  ///< blanks precede the token in its action
  int64_t integer = 0;
  double real = 0;
};

/// Text around "{{-" and "-}}" has been trimmed; comments and empty texts are left out.
/// Errors: usage (an action or string without its end, an unknown character, a bad number).
Result<std::vector<Token>> read_tokens(std::string_view text);

}  // namespace berth::cli::syntax
