// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The letters of a document: what strings and numbers look like in it.
namespace berth::json {

/// The place of the first byte that no document can hold, or npos: one that belongs to no UTF-8
/// sequence, or a control character that is no white space.  RFC 8259, RFC 3629
size_t find_foreign_byte(std::string_view text);

/// Appends `text` with its quotes. Invalid UTF-8 becomes U+FFFD.  RFC 8259 section 7
void append_string(std::string& out, std::string_view text);

/// What is no number in JSON (infinities, NaN) becomes null.
void append_number(std::string& out, double number);

}  // namespace berth::json
