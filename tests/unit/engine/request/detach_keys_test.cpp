// SPDX-License-Identifier: Apache-2.0
#include "engine/request/detach_keys.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace berth::engine {
namespace {

DetachKeys usual() {
  return DetachKeys(*parse_detach_keys("ctrl-p,ctrl-q"));
}

TEST(DetachKeys, are_written_as_docker_writes_them) {
  EXPECT_EQ(*parse_detach_keys("ctrl-p,ctrl-q"), "\x10\x11");
  EXPECT_EQ(*parse_detach_keys("a,ctrl-[,ctrl-_"), "a\x1b\x1f");
  EXPECT_EQ(*parse_detach_keys("ctrl-@"), std::string(1, '\0'));
  EXPECT_EQ(*parse_detach_keys(""), "");
  for (const char* wrong : {"ctrl-", "ctrl-1", "CTRL-p", "ab", "a,", ",", "ctrl-p ctrl-q"}) {
    EXPECT_FALSE(parse_detach_keys(wrong).ok()) << wrong;
  }
  EXPECT_EQ(to_line(parse_detach_keys("ctrl-").error()),
            "invalid detach keys 'ctrl-': expected keys such as 'a' or 'ctrl-p', with commas");
}

TEST(DetachKeys, are_found_in_one_read_or_in_two) {
  DetachKeys keys = usual();
  auto typed = keys.feed("ls\x10\x11");
  EXPECT_EQ(typed.bytes, "ls");
  EXPECT_TRUE(typed.detach);
  keys = usual();
  typed = keys.feed("\x10");
  EXPECT_EQ(typed.bytes, "");
  EXPECT_FALSE(typed.detach);
  EXPECT_TRUE(keys.feed("\x11").detach);
}

TEST(DetachKeys, that_are_not_finished_reach_the_container) {
  DetachKeys keys = usual();
  EXPECT_EQ(keys.feed("\x10").bytes, "");
  auto typed = keys.feed("x");
  EXPECT_EQ(typed.bytes, "\x10x");
  EXPECT_FALSE(typed.detach);
  // The second of two may begin the sequence.
  EXPECT_EQ(keys.feed("\x10").bytes, "");
  EXPECT_EQ(keys.feed("\x10").bytes, "\x10");
  EXPECT_TRUE(keys.feed("\x11").detach);
}

TEST(DetachKeys, inside_a_paste_are_data) {
  DetachKeys keys = usual();
  auto typed = keys.feed("before\x10\x11 after\n");
  EXPECT_EQ(typed.bytes, "before\x10\x11 after\n");
  EXPECT_FALSE(typed.detach);
  typed = keys.feed("\x1b[200~text\x10\x11");
  EXPECT_FALSE(typed.detach);
  EXPECT_EQ(typed.bytes, "\x1b[200~text\x10\x11");
  EXPECT_FALSE(keys.feed("\x10\x11").detach);
  // A mark may come in two reads.
  EXPECT_FALSE(keys.feed("\x1b[20").detach);
  EXPECT_EQ(keys.feed("1~").bytes, "1~");
  EXPECT_TRUE(keys.feed("\x10\x11").detach);
}

TEST(DetachKeys, that_are_none_let_everything_through) {
  DetachKeys keys("");
  EXPECT_EQ(keys.feed("\x10\x11").bytes, "\x10\x11");
}

}  // namespace
}  // namespace berth::engine
