// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "base/rollback.hpp"
#include "base/text.hpp"

namespace berth {
namespace {

Result<std::unique_ptr<int>> make(bool work) {
  if (!work) return sys_error(EACCES, "open '/dev/nvidia2'");
  return std::make_unique<int>(7);
}

Result<int> use(bool work) {
  auto number = TRY_CTX(make(work), "cannot give GPU 2 to the container");
  return *number;
}

TEST(SavedErrno, is_that_of_the_call_and_not_of_the_text) {
  errno = ENOENT;
  EXPECT_EQ(errno_now().error((errno = EIO, "open")).sys_errno, ENOENT);
}

TEST(Result, carries_a_move_only_value_through_try) {
  EXPECT_EQ(*use(true), 7);
}

TEST(Error, reads_as_one_line_outermost_first) {
  Error error = std::move(use(false)).error();
  error =
      std::move(error).with_context("cannot start container 'c1'").with_hint("berth doctor gpu");
  EXPECT_EQ(error.kind, Kind::denied);
  EXPECT_EQ(to_line(error),
            "cannot start container 'c1': cannot give GPU 2 to the container: open '/dev/nvidia2': "
            "Permission denied; try: berth doctor gpu");
}

TEST(Error, keeps_the_hint_of_the_level_that_knew_more) {
  Error error = make_error(Kind::usage, "x", "inner");
  EXPECT_EQ(std::move(error).with_hint("outer").hint, "inner");
}

TEST(Error, kinds_survive_their_spelling) {
  for (Kind kind : {Kind::usage, Kind::not_found, Kind::exists, Kind::denied, Kind::unsupported,
                    Kind::busy, Kind::corrupt, Kind::interrupted, Kind::io, Kind::bug}) {
    EXPECT_EQ(kind_from_name(kind_name(kind)), kind);
  }
  EXPECT_EQ(kind_from_name("else"), Kind::bug);
}

TEST(Rollback, undoes_in_reverse_unless_committed) {
  std::string order;
  {
    Rollback undo;
    undo.add([&] { order += "a"; });
    undo.add([&] { order += "b"; });
  }
  EXPECT_EQ(order, "ba");
  {
    Rollback undo;
    undo.add([&] { order += "c"; });
    undo.commit();
  }
  EXPECT_EQ(order, "ba");
}

TEST(Text, parses_decimals_and_nothing_else) {
  EXPECT_EQ(parse_decimal("1.5"), 1.5);
  EXPECT_EQ(parse_decimal("0.1"), 0.1);
  EXPECT_EQ(parse_decimal(".25"), 0.25);
  EXPECT_EQ(parse_decimal("64"), 64.0);
  for (const char* text :
       {"", ".", "-1", "+1", "1e3", "inf", "nan", "0x1", "1.2.3", " 1", "1234567890123456789"}) {
    EXPECT_FALSE(parse_decimal(text)) << text;
  }
}

TEST(Text, parses_bytes_as_docker_does) {
  EXPECT_EQ(parse_bytes("100"), 100u);
  EXPECT_EQ(parse_bytes("512m"), 512u << 20);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1610612736u);
  EXPECT_EQ(parse_bytes("64KB"), 65536u);
  for (const char* wrong : {"", "m", "-1", "1x", "1mm", "1e99", "1.2.3", " 1", "99999999999p"}) {
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
  }
}

TEST(Text, prints_bytes_with_three_digits) {
  EXPECT_EQ(human_bytes(0), "0B");
  EXPECT_EQ(human_bytes(999), "999B");
  EXPECT_EQ(human_bytes(206'000'000), "206MB");
  EXPECT_EQ(human_bytes(5'100'000'000), "5.1GB");
  EXPECT_EQ(human_bytes(999'700), "1MB");
}

TEST(Text, escapes_what_could_move_the_cursor) {
  EXPECT_EQ(escape_controls("a\x1b[2J\r\n\xc2\x9b é"), "a\\x1b[2J\\x0d\\n\\x9b é");
}

TEST(Text, escapes_controls_of_8_bit_terminals_and_keeps_every_letter) {
  EXPECT_EQ(escape_controls("\x9b"
                            "2J\x85"),
            "\\x9b2J\\x85");
  // A continuation byte that is not a control because a letter is made of it, and one that is cut
  // off.
  EXPECT_EQ(escape_controls("\xc5\x9b \xe2\x80\x9b \xf0\x9f\x9a\x80"),
            "\xc5\x9b \xe2\x80\x9b \xf0\x9f\x9a\x80");
  EXPECT_EQ(escape_controls("\xe2\x80"), "\xe2\\x80");
  EXPECT_EQ(escape_controls("\xff\xc0\x9b"), "\xff\xc0\\x9b");
  EXPECT_EQ(escape_controls("\xe0\x82\x9b"), "\xe0\\x82\\x9b");  // longer than it need be
}

TEST(Text, keeps_the_lines_of_a_text_of_several) {
  EXPECT_EQ(escape_controls("a\tb\n\x1b[2J\r\n", Lines::kept), "a\tb\n\\x1b[2J\\x0d\n");
}

TEST(Text, parses_whole_numbers_only) {
  EXPECT_EQ(parse_u64("18446744073709551615"), UINT64_MAX);
  for (const char* wrong : {"", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616"}) {
    EXPECT_EQ(parse_u64(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(parse_i64("-5"), -5);
}

TEST(Text, suggests_only_near_words) {
  EXPECT_EQ(nearest("imagse", {"images", "import", "run"}), "images");
  EXPECT_EQ(nearest("evn", {"env", "rm"}), "env");  // neighbours swapped
  EXPECT_EQ(nearest("zzz", {"images", "run"}), std::nullopt);
}

TEST(Text, splits) {
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(split("", ',').size(), 1u);
  EXPECT_EQ(split_blank("  a \t b\n"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, finds_what_is_below_a_directory) {
  EXPECT_TRUE(is_below("/a/b", "/a"));
  EXPECT_TRUE(is_below("/a", "/a/"));
  EXPECT_TRUE(is_below("/a", "/"));
  EXPECT_FALSE(is_below("/ab", "/a"));
  EXPECT_FALSE(is_below("/", "/a"));
}

TEST(Digest, accepts_only_sha256_in_lower_case) {
  std::string hex(64, 'a');
  EXPECT_EQ(Digest::parse("sha256:" + hex)->hex(), hex);
  for (std::string wrong : {std::string("sha256:"), "sha256:" + std::string(64, 'A'),
                            "sha256:" + std::string(63, 'a') + "/", "sha512:" + hex,
                            "sha256:../" + std::string(61, 'a')}) {
    EXPECT_FALSE(Digest::parse(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace berth
