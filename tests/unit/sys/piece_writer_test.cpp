// SPDX-License-Identifier: Apache-2.0
#include "sys/piece_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "sys/file.hpp"
#include "sys/io_at.hpp"

namespace berth::sys {
namespace {

using std::chrono::nanoseconds;
using Way = WritePace::Way;

/// What a pace settles on when the ways take so long for a MiB.
int direct_of_64(int64_t cached, int64_t direct) {
  WritePace pace;
  int taken = 0;
  for (int i = 0; i < 64 + 8; ++i) {
    Way way = pace.next();
    if (i >= 8 && way == Way::direct) ++taken;
    pace.tell(way, 1 << 20, nanoseconds(way == Way::direct ? direct : cached));
  }
  return taken;
}

TEST(WritePace, takes_the_disk_itself_where_that_keeps_up) {
  EXPECT_EQ(direct_of_64(3'000'000, 1'000'000), 63);  // the other is tried once
  EXPECT_EQ(direct_of_64(1'000'000, 3'900'000), 63);
  EXPECT_EQ(direct_of_64(1'000'000, 4'100'000), 1);
  EXPECT_EQ(direct_of_64(1'000'000, 9'000'000), 1);
}

TEST(WritePace, notices_that_the_cache_has_become_slow) {
  WritePace pace;
  int64_t cached = 1'000'000;
  auto go_on = [&](int pieces) {
    int taken = 0;
    for (int i = 0; i < pieces; ++i) {
      Way way = pace.next();
      taken += way == Way::direct ? 1 : 0;
      pace.tell(way, 1 << 20, nanoseconds(way == Way::direct ? 5'000'000 : cached));
    }
    return taken;
  };
  go_on(100);
  EXPECT_LE(go_on(64), 1);
  cached = 20'000'000;
  go_on(10);
  EXPECT_GE(go_on(64), 62);
}

TEST(WritePace, forgets_a_way_that_does_not_exist) {
  WritePace pace;
  pace.forbid_direct();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(pace.next(), Way::cached);
}

class PieceFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "berth-pieces-" + random_hex(4);
    file_ = *open_at(cwd(), path_, O_RDWR | O_CREAT | O_EXCL, 0600);
  }
  void TearDown() override { ignore(remove_entry(cwd(), path_)); }

  std::string path_;
  Fd file_;
};

TEST_F(PieceFile, holds_what_was_written_whichever_way_it_went) {
  WritePace pace;
  PieceWriter pieces(&pace);
  pieces.begin(file_, "pieces");
  std::string expected;
  for (int i = 0; i < 60; ++i) {
    std::string part(400'000 + 1111 * i, '\0');
    for (size_t at = 0; at < part.size(); ++at) part[at] = static_cast<char>(at * 7 + i);
    ASSERT_TRUE(pieces.write(expected.size(), part).ok());
    expected += part;
    if (i % 7 == 0) {
      ASSERT_TRUE(pieces.flush().ok());
    }
    EXPECT_EQ(*pieces.read(expected.size() - 100, 100), expected.substr(expected.size() - 100));
  }
  ASSERT_TRUE(pieces.flush().ok());
  EXPECT_TRUE(*read_at(file_, 0, expected.size() + 1, "pieces") == expected);
  EXPECT_EQ(::fcntl(file_.get(), F_GETFL) & O_DIRECT, 0);
}

TEST_F(PieceFile, has_zeros_in_small_gaps_and_holes_in_large_ones) {
  PieceWriter pieces;
  pieces.begin(file_, "pieces");
  ASSERT_TRUE(pieces.write(0, "a").ok());
  ASSERT_TRUE(pieces.write(100, "b").ok());
  ASSERT_TRUE(pieces.write(10 << 20, "c").ok());
  ASSERT_TRUE(pieces.flush().ok());
  EXPECT_EQ(*read_at(file_, 0, 101, "pieces"), "a" + std::string(99, '\0') + "b");
  EXPECT_EQ(*read_at(file_, 10 << 20, 10, "pieces"), "c");
  struct stat status = *stat_fd(file_, "pieces");
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

TEST_F(PieceFile, a_pace_without_the_way_writes_as_well) {
  WritePace pace;
  pace.forbid_direct();
  PieceWriter pieces(&pace);
  pieces.begin(file_, "pieces");
  ASSERT_TRUE(pieces.write(0, std::string(PieceWriter::kPiece, 'x')).ok());
  EXPECT_EQ(read_at(file_, 0, PieceWriter::kPiece + 1, "pieces")->size(), PieceWriter::kPiece);
}

TEST_F(PieceFile, a_file_that_cannot_be_written_is_an_error_of_one_line) {
  Fd reading = *open_at(cwd(), path_, O_RDONLY);
  WritePace pace;
  for (int i = 0; i < 4; ++i) {
    PieceWriter pieces(&pace);
    pieces.begin(reading, "pieces");
    Result<void> written = pieces.write(0, std::string(PieceWriter::kPiece, 'x'));
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().sys_errno, EBADF);
  }
}

}  // namespace
}  // namespace berth::sys
