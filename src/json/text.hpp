// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The characters of a document: the notation of strings and numbers.
namespace berth::json {

/// The position of the first byte that no document can contain, or npos: one outside of UTF-8
/// sequences, or a control character that is not white space.  RFC 8259, RFC 3629
size_t find_foreign_byte(std::string_view text);

/// Appends `text` with its quotes. Invalid UTF-8 becomes U+FFFD.  RFC 8259 section 7
void append_string(std::string& out, std::string_view text);

/// Values that JSON lacks (infinities, NaN) become null.
void append_number(std::string& out, double number);

}  // namespace berth::json
