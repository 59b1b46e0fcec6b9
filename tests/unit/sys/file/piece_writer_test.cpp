// SPDX-License-Identifier: Apache-2.0
#include "sys/file/piece_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::sys {
namespace {

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
  PieceWriter pieces(PieceWriter::Cache::past);
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

TEST(PieceWriter, writes_through_the_cache_where_the_file_system_knows_no_other_way) {
  Fd file(::memfd_create("pieces", MFD_CLOEXEC));
  PieceWriter pieces(PieceWriter::Cache::past);
  pieces.begin(file, "pieces");
  std::string expected(3 * PieceWriter::kPiece + 5, 'x');
  ASSERT_TRUE(pieces.write(0, expected).ok());
  ASSERT_TRUE(pieces.flush().ok());
  EXPECT_TRUE(*read_at(file, 0, expected.size() + 1, "pieces") == expected);
}

TEST_F(PieceFile, a_file_that_cannot_be_written_is_an_error_of_one_line) {
  Fd reading = *open_at(cwd(), path_, O_RDONLY);
  for (int i = 0; i < 4; ++i) {
    PieceWriter pieces(PieceWriter::Cache::past);
    pieces.begin(reading, "pieces");
    ASSERT_TRUE(pieces.write(0, std::string(PieceWriter::kPiece, 'x')).ok());
    Result<void> written = pieces.flush();
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().sys_errno, EBADF);
    EXPECT_TRUE(pieces.flush().ok());  // told once
  }
}

TEST_F(PieceFile, an_error_of_a_piece_is_told_by_the_end) {
  Fd reading = *open_at(cwd(), path_, O_RDONLY);
  PieceWriter pieces(PieceWriter::Cache::past);
  pieces.begin(reading, "pieces");
  std::string piece(PieceWriter::kPiece, 'x');
  Result<void> written;
  for (uint64_t at = 0; at < 4 * PieceWriter::kPiece && written.ok(); at += piece.size()) {
    written = pieces.write(at, piece);
  }
  EXPECT_FALSE(written.ok() && pieces.flush().ok());
}

TEST_F(PieceFile, who_gives_up_leaves_other_files_alone) {
  std::string other_path = path_ + "-other";
  Fd other;
  for (int i = 0; i < 20; ++i) {
    PieceWriter pieces(PieceWriter::Cache::past);
    pieces.begin(file_, "pieces");
    ASSERT_TRUE(pieces.write(0, std::string(2 * PieceWriter::kPiece, 'x')).ok());
    file_.reset();
    other = *open_at(cwd(), other_path, O_RDWR | O_CREAT, 0600);  // by the same number, as a rule
    file_ = *open_at(cwd(), path_, O_RDWR);
  }
  EXPECT_EQ(stat_fd(other, "other")->st_size, 0);
  ignore(remove_entry(cwd(), other_path));
}

TEST_F(PieceFile, tells_its_observer_all_in_order) {
  PieceWriter pieces(PieceWriter::Cache::past);
  uint64_t told = 0;
  pieces.observe([&](uint64_t offset, std::string_view bytes) {
    EXPECT_EQ(offset, told);
    EXPECT_EQ(bytes.find_first_not_of('x'), std::string_view::npos);
    told += bytes.size();
  });
  pieces.begin(file_, "pieces");
  constexpr uint64_t kSize = 5 * PieceWriter::kPiece + 77;
  for (uint64_t at = 0; at < kSize; at += 77) {
    ASSERT_TRUE(pieces.write(at, std::string(77, 'x')).ok());
  }
  ASSERT_TRUE(pieces.flush().ok());
  EXPECT_GE(told, kSize);
}

}  // namespace
}  // namespace berth::sys
