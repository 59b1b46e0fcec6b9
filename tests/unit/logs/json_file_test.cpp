// SPDX-License-Identifier: Apache-2.0
#include "logs/json_file.hpp"

#include <gtest/gtest.h>

#include <string>

#include "json/value.hpp"

namespace berth::logs {
namespace {

constexpr int64_t kTime = 1'795'176'000'000'000'007;

std::string entry_of(std::string_view piece, Stream stream = Stream::out) {
  std::string buffer(max_json_entry(piece.size()), '\0');
  char* end = write_json_entry(buffer.data(), piece, JsonTail(stream, kTime));
  buffer.resize(static_cast<size_t>(end - buffer.data()));
  return buffer;
}

TEST(JsonFile, has_dockers_members) {
  EXPECT_EQ(entry_of("a \"b\"\x1b\n", Stream::error),
            "{\"log\":\"a \\\"b\\\"\\u001b\\n\",\"stream\":\"stderr\","
            "\"time\":\"2026-11-20T12:00:00.000000007Z\"}\n");
}

TEST(JsonFile, replaces_bytes_that_are_no_utf_8) {
  EXPECT_NE(entry_of("\xff\n").find("\xef\xbf\xbd\\n"), std::string::npos);
}

TEST(JsonFile, a_line_with_nothing_to_quote_is_written_in_one_go) {
  const JsonTail tail(Stream::out, kTime);
  for (size_t length = 0; length < 70; ++length) {
    std::string line = std::string(length, 'x') + "\n";
    std::string bytes = line + "the next\n";
    std::string buffer(bytes.size() + 128, '#');
    PlainLine written = write_plain_line(buffer.data(), bytes, tail);
    ASSERT_EQ(written.size, line.size());
    buffer.resize(static_cast<size_t>(written.end - buffer.data()));
    ASSERT_EQ(buffer, entry_of(line));
    // Whatever needs quoting, wherever it is, and a line without an end, are left to the other.
    for (std::string_view other : {"\"", "\\", "\t", "\x7f\xff", "\xc3\xa4"}) {
      std::string quoted = bytes;
      quoted.insert(length / 2, other);
      buffer.assign(quoted.size() + 128, '#');
      ASSERT_EQ(write_plain_line(buffer.data(), quoted, tail).size, 0U) << quoted;
    }
    buffer.assign(length + 128, '#');
    ASSERT_EQ(write_plain_line(buffer.data(), std::string(length, 'x'), tail).size, 0U);
  }
}

// Sixteen bytes are looked at together: every byte at every place of them.
TEST(JsonFile, every_byte_at_every_place_is_read_back) {
  for (int byte = 0; byte < 0x80; ++byte) {
    for (size_t place = 0; place < 20; ++place) {
      std::string piece(20, 'x');
      piece[place] = static_cast<char>(byte);
      std::string line = entry_of(piece);
      ASSERT_TRUE(line.ends_with("}\n"));
      line.pop_back();
      ASSERT_TRUE(json::parse(line, "log").ok()) << line;
      ASSERT_EQ(line.find('\n'), std::string::npos);
      auto entry = parse_json_entry(line);
      ASSERT_TRUE(entry) << line;
      ASSERT_EQ(entry->text, piece);
      ASSERT_EQ(entry->time_ns, kTime);
    }
  }
}

TEST(JsonFile, never_needs_more_room_than_it_says) {
  std::string worst(kMaxPiece, '\x01');
  EXPECT_LE(entry_of(worst).size(), max_json_entry(worst.size()));
  EXPECT_LE(entry_of(std::string(kMaxPiece, '\xff')).size(), max_json_entry(kMaxPiece));
}

TEST(JsonFile, a_text_that_ends_in_a_backslash_and_n_is_no_newline) {
  std::string line = entry_of("C:\\n");
  line.pop_back();
  EXPECT_EQ(parse_json_entry(line)->text, "C:\\n");
}

TEST(JsonFile, what_is_no_entry_is_none) {
  for (std::string_view line :
       {"", "{", "[]", "{\"log\":\"x\"}", "{\"log\":1,\"stream\":\"stdout\",\"time\":\"\"}",
        "{\"log\":\"x\",\"stream\":\"stdout\",\"time\":\"2026-13-20T12:00:00.000000007Z\"}",
        "{\"log\":\"a\"b\",\"stream\":\"stdout\",\"time\":\"2026-11-20T12:00:00.000000007Z\"}",
        "{\"log\":\"\\q\",\"stream\":\"stdout\",\"time\":\"2026-11-20T12:00:00.000000007Z\"}"}) {
    EXPECT_FALSE(parse_json_entry(line)) << line;
  }
}

TEST(JsonFile, dockers_own_entries_are_read) {
  auto entry = parse_json_entry(
      R"({"log":"\u003cb\u003e\t\n","stream":"stderr","time":"2026-11-20T12:00:00.5Z"})");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->text, "<b>\t\n");
  EXPECT_EQ(entry->stream, Stream::error);
  EXPECT_EQ(entry->time_ns, 1'795'176'000'500'000'000);
}

}  // namespace
}  // namespace berth::logs
