// SPDX-License-Identifier: Apache-2.0
#include "logs/line_cutter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::logs {
namespace {

using testing::ElementsAre;

class Cutter {
 public:
  void feed(std::string_view bytes) {
    cutter_.feed(bytes, [this](std::string_view piece) { pieces.emplace_back(piece); });
  }
  void finish() {
    cutter_.finish([this](std::string_view piece) { pieces.emplace_back(piece); });
  }
  std::vector<std::string> pieces;

 private:
  LineCutter cutter_;
};

TEST(LineCutter, gives_whole_lines_however_they_arrive) {
  Cutter cutter;
  cutter.feed("one\ntw");
  EXPECT_THAT(cutter.pieces, ElementsAre("one\n"));
  cutter.feed("o");
  cutter.feed("\n\n");
  EXPECT_THAT(cutter.pieces, ElementsAre("one\n", "two\n", "\n"));
}

TEST(LineCutter, gives_the_rest_without_a_newline_at_the_end) {
  Cutter cutter;
  cutter.feed("no end");
  EXPECT_THAT(cutter.pieces, ElementsAre());
  cutter.finish();
  cutter.finish();
  EXPECT_THAT(cutter.pieces, ElementsAre("no end"));
}

TEST(LineCutter, cuts_long_lines_at_16_kib) {
  Cutter cutter;
  cutter.feed(std::string(kMaxPiece - 1, 'a'));
  EXPECT_TRUE(cutter.pieces.empty());
  cutter.feed(std::string(kMaxPiece + 3, 'a') + "\n");
  ASSERT_EQ(cutter.pieces.size(), 3U);
  EXPECT_EQ(cutter.pieces[0].size(), kMaxPiece);
  EXPECT_EQ(cutter.pieces[1].size(), kMaxPiece);
  EXPECT_EQ(cutter.pieces[2], "aa\n");
}

}  // namespace
}  // namespace berth::logs
