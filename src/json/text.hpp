// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The notation of strings and numbers in a document.
namespace berth::json {

/// The position of the first byte that is not valid in any document, or npos: a byte that is not
/// part of a UTF-8 sequence, or a control character that is not white space.  RFC 8259, RFC 3629
size_t find_foreign_byte(std::string_view text);

/// Appends `text` in quotes, escaped. Invalid UTF-8 becomes U+FFFD.  RFC 8259 section 7
void append_string(std::string& out, std::string_view text);

/// Appends `number`; values that JSON lacks (infinities, NaN) become null.
void append_number(std::string& out, double number);

}  // namespace berth::json
