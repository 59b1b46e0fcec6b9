// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "logs/entry.hpp"

/// Docker's json-file format, one entry a line:
/// {"log":"…\n","stream":"stdout","time":"2026-11-20T12:00:00.000000007Z"}. Pure.
namespace berth::logs {

/// The end of an entry, which all entries of one read(2) share, so it is made once.
class JsonTail {
 public:
  JsonTail(Stream stream, int64_t time_ns);
  std::string_view text() const { return {text_, size_}; }

 private:
  char text_[80];
  size_t size_ = 0;
};

/// The maximal size of the entry for a piece of `size` bytes.
constexpr size_t max_json_entry(size_t size) {
  return 6 * size + 128;
}

/// Writes the entry of `piece` at `to`, where max_json_entry() bytes are free, and returns the end
/// of the entry. Invalid UTF-8 becomes U+FFFD.
char* write_json_entry(char* to, std::string_view piece, const JsonTail& tail);

struct PlainLine {
  char* end = nullptr;
  size_t size = 0;  ///< of the line with its newline; 0: it needs quoting, `to` is garbage
};
/// Writes the entry of the first line of `bytes`, if nothing in the line needs quoting. At `to`
/// bytes.size() + 128 bytes are free.
PlainLine write_plain_line(char* to, std::string_view bytes, const JsonTail& tail);

/// Parses a line without its newline. Nothing if it is not an entry, because a power cut or a full
/// disk has truncated it.
std::optional<Entry> parse_json_entry(std::string_view line);

}  // namespace berth::logs
