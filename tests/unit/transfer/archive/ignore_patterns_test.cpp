// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transfer/archive/content_digest.hpp"

namespace berth::transfer {
namespace {

bool ignores(std::string_view patterns, std::string_view path) {
  auto parsed = IgnorePatterns::parse(patterns);
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() && parsed->ignores(path);
}

TEST(IgnorePatterns, a_name_counts_at_the_top_and_for_all_below_it) {
  EXPECT_TRUE(ignores("build\n", "build"));
  EXPECT_TRUE(ignores("build/\n", "build/x/y"));
  EXPECT_TRUE(ignores("/build\n", "build/x"));
  EXPECT_FALSE(ignores("build\n", "src/build"));
  EXPECT_FALSE(ignores("build\n", "builder"));
}

TEST(IgnorePatterns, stars_stay_within_a_name_and_two_of_them_do_not) {
  EXPECT_TRUE(ignores("*.o\n", "a.o"));
  EXPECT_FALSE(ignores("*.o\n", "x/a.o"));
  EXPECT_TRUE(ignores("**/*.o\n", "a.o"));
  EXPECT_TRUE(ignores("**/*.o\n", "x/y/a.o"));
  EXPECT_TRUE(ignores("x/**/z\n", "x/z"));
  EXPECT_TRUE(ignores("x/**\n", "x/y"));
  EXPECT_TRUE(ignores("a?c\n", "abc"));
  EXPECT_TRUE(ignores("[a-c]x\n", "bx"));
  EXPECT_FALSE(ignores("[^a-c]x\n", "bx"));
  EXPECT_TRUE(ignores("\\*x\n", "*x"));
}

TEST(IgnorePatterns, the_last_one_wins) {
  EXPECT_FALSE(ignores("*.md\n!README.md\n", "README.md"));
  EXPECT_TRUE(ignores("*.md\n!README.md\nR*\n", "README.md"));
  EXPECT_TRUE(ignores("# no\n\n  *.md  \n", "x.md"));
}

TEST(IgnorePatterns, what_cannot_be_read_is_refused) {
  EXPECT_FALSE(IgnorePatterns::parse("[a\n").ok());
  EXPECT_FALSE(IgnorePatterns::parse("x[\n").ok());
}

TEST(IgnorePatterns, many_stars_take_no_time) {
  std::string stars;
  for (int i = 0; i < 50; ++i) stars += "*a";
  EXPECT_FALSE(ignores(stars + "b\n", std::string(2000, 'a')));
  std::string deep;
  for (int i = 0; i < 12; ++i) deep += "**/a/";
  std::string path = "a";
  for (int i = 0; i < 30; ++i) path += "/a";
  EXPECT_FALSE(ignores(deep + "b\n", path));
}

}  // namespace
}  // namespace berth::transfer
