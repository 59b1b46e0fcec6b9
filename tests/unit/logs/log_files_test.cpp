// SPDX-License-Identifier: Apache-2.0
// The writer and the reader of logs on real files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "logs/reader.hpp"
#include "logs/writer.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::logs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LogFiles : public testing::TestWithParam<Format> {
 protected:
  void SetUp() override { directory_ = std::move(*sys::TempDir::make(sys::cwd(), "berth-logs-")); }
  Writer writer(uint64_t max_bytes = 0, uint64_t max_files = 1) {
    auto made = Writer::open(directory_.fd(), {GetParam(), max_bytes, max_files});
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }
  Reader reader() {
    auto made = Reader::open(std::move(*sys::duplicate(directory_.fd())));
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }
  static std::vector<std::string> all(Reader& reader) {
    std::vector<std::string> texts;
    while (true) {
      auto entry = reader.next();
      EXPECT_TRUE(entry.ok());
      if (!entry.ok() || !*entry) return texts;
      texts.push_back(((*entry)->stream == Stream::error ? "E:" : "O:") + (*entry)->text);
    }
  }
  std::vector<std::string> all() {
    Reader fresh = reader();
    return all(fresh);
  }
  std::vector<std::string> tail(uint64_t count) {
    Reader fresh = reader();
    std::vector<std::string> texts;
    auto entries = fresh.tail(count);
    for (const Entry& entry : *entries) texts.push_back(entry.text);
    return texts;
  }
  void damage(uint64_t at, std::string_view bytes) {
    auto file = sys::open_at(directory_.fd(), kLogFile, O_WRONLY);
    ASSERT_TRUE(sys::write_at(*file, at, bytes, "log").ok());
  }
  uint64_t size() {
    auto status = sys::stat_entry(directory_.fd(), kLogFile);
    return static_cast<uint64_t>((*status)->st_size);
  }
  sys::TempDir directory_;
};
INSTANTIATE_TEST_SUITE_P(Formats, LogFiles, testing::Values(Format::json_file, Format::local),
                         [](const auto& given) {
                           return given.param == Format::local ? "local" : "json_file";
                         });

TEST_P(LogFiles, lines_of_both_streams_come_back_in_their_order) {
  Writer log = writer();
  log.add(Stream::out, "one\ntw");
  log.add(Stream::error, "bad\n");
  log.add(Stream::out, "o\nthree");
  EXPECT_THAT(all(), ElementsAre("O:one\n", "E:bad\n", "O:two\n"));
  log.finish();
  EXPECT_THAT(all(), ElementsAre("O:one\n", "E:bad\n", "O:two\n", "O:three"));
}

TEST_P(LogFiles, a_second_life_goes_on_behind_the_first) {
  {
    Writer log = writer();
    log.add(Stream::out, "no newline");
    log.finish();
  }
  Writer log = writer();
  log.add(Stream::out, "again\n");
  EXPECT_THAT(all(), ElementsAre("O:no newline", "O:again\n"));
}

TEST_P(LogFiles, long_lines_come_in_pieces_of_16_kib) {
  Writer log = writer();
  log.add(Stream::out, std::string(40000, 'x') + "\n");
  std::vector<size_t> sizes;
  for (const std::string& text : all()) sizes.push_back(text.size() - 2);
  EXPECT_THAT(sizes, ElementsAre(16384, 16384, 40001 - 32768));
}

TEST_P(LogFiles, rotated_files_hold_the_newest_entries_and_no_more_than_asked_for) {
  Writer log = writer(2000, 3);
  for (int i = 0; i < 400; ++i) log.add(Stream::out, "line " + std::to_string(i) + "\n");
  auto names = sys::list_directory(directory_.fd(), ".");
  EXPECT_THAT(*names, ElementsAre("log", "log.1", "log.2"));
  auto lines = all();
  EXPECT_EQ(lines.back(), "O:line 399\n");
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i], "O:line " + std::to_string(400 - lines.size() + i) + "\n");
  }
  for (const char* name : {"log.1", "log.2"}) {
    auto status = sys::stat_entry(directory_.fd(), name);
    EXPECT_GE((*status)->st_size, 1900);
    EXPECT_LE((*status)->st_size, 2200);
  }
}

TEST_P(LogFiles, the_last_entries_are_found_over_rotated_files) {
  Writer log = writer(100'000, 50);
  for (int i = 0; i < 20'000; ++i) log.add(Stream::out, "line " + std::to_string(i) + "\n");
  EXPECT_THAT(tail(0), IsEmpty());
  EXPECT_THAT(tail(2), ElementsAre("line 19998\n", "line 19999\n"));
  auto many = tail(15'000);
  ASSERT_EQ(many.size(), 15'000U);
  EXPECT_EQ(many.front(), "line 5000\n");
  EXPECT_EQ(tail(1'000'000).size(), 20'000U);
}

// The window at the end of the file may begin in the middle of such a line.
TEST_P(LogFiles, a_line_that_began_long_ago_is_whole_among_the_last) {
  Writer log = writer();
  log.add(Stream::error, "a prompt");
  for (int i = 0; i < 20'000; ++i) log.add(Stream::out, "line " + std::to_string(i) + "\n");
  log.add(Stream::error, " answered\n");
  EXPECT_THAT(tail(2), ElementsAre("line 19999\n", "a prompt answered\n"));
}

TEST_P(LogFiles, who_follows_misses_and_doubles_nothing_over_rotations) {
  constexpr int kLines = 30'000;
  Writer log = writer(20'000, 200);
  Reader following = reader();
  following.go_on();
  std::atomic<bool> done = false;
  std::thread writing([&] {
    for (int i = 0; i < kLines; ++i) log.add(Stream::out, std::to_string(i) + "\n");
    done = true;
  });
  int next = 0;
  while (next < kLines) {
    bool last = done;
    auto entry = following.next();
    ASSERT_TRUE(entry.ok());
    if (*entry) {
      ASSERT_EQ((*entry)->text, std::to_string(next) + "\n");
      ++next;
    } else if (last) {
      break;
    }
  }
  writing.join();
  EXPECT_EQ(next, kLines);
}

/// At first there are few files, and each rotation gives every one of them a name that was not
/// there before.
TEST_P(LogFiles, who_follows_from_the_first_line_misses_no_file_of_many_small_ones) {
  constexpr int kLines = 60;
  for (int round = 0; round < 200; ++round) {
    auto directory = std::move(*sys::TempDir::make(sys::cwd(), "berth-logs-"));
    Writer log = std::move(*Writer::open(directory.fd(), {GetParam(), 100, kLines + 1}));
    Reader following = std::move(*Reader::open(std::move(*sys::duplicate(directory.fd()))));
    following.go_on();
    std::thread writing([&] {
      for (int i = 0; i < kLines; ++i) log.add(Stream::out, std::to_string(i) + "\n");
    });
    std::vector<std::string> seen;
    while (seen.empty() || seen.back() != std::to_string(kLines - 1) + "\n") {
      auto entry = following.next();
      ASSERT_TRUE(entry.ok());
      if (*entry) seen.push_back((*entry)->text);
    }
    writing.join();
    EXPECT_EQ(seen.size(), size_t{kLines}) << round;
  }
}

TEST_P(LogFiles, one_file_alone_is_followed_over_its_replacement) {
  Writer log = writer(500, 1);
  Reader following = reader();
  following.go_on();
  for (int i = 0; i < 100; ++i) {
    std::string line = "line " + std::to_string(i) + "\n";
    log.add(Stream::out, line);
    EXPECT_THAT(all(following), ElementsAre("O:" + line));
  }
  EXPECT_THAT(*sys::list_directory(directory_.fd(), "."), ElementsAre("log"));
}

TEST_P(LogFiles, without_go_on_it_ends_at_what_there_was) {
  Writer log = writer(500, 100);
  log.add(Stream::out, "before\n");
  Reader fresh = reader();
  for (int i = 0; i < 50; ++i) log.add(Stream::out, "after\n");
  EXPECT_THAT(all(fresh), ElementsAre("O:before\n"));
  fresh.go_on();
  EXPECT_EQ(all(fresh).size(), 50U);
}

TEST_P(LogFiles, half_an_entry_of_a_killed_writer_is_cut_off) {
  {
    Writer log = writer();
    log.add(Stream::out, "whole\n");
    log.add(Stream::out, std::string(9000, 'x') + "\n");
  }
  auto file = sys::open_at(directory_.fd(), kLogFile, O_WRONLY);
  ASSERT_TRUE(sys::truncate(*file, size() - 5000, "log").ok());
  EXPECT_THAT(all(), ElementsAre("O:whole\n"));
  Writer log = writer();
  log.add(Stream::out, "next\n");
  EXPECT_THAT(all(), ElementsAre("O:whole\n", "O:next\n"));
}

TEST_P(LogFiles, damage_costs_only_what_it_hits) {
  Writer log = writer();
  log.add(Stream::out, "one\n");
  uint64_t at = size();
  log.add(Stream::out, "two\n");
  log.add(Stream::out, "three\n");
  damage(at, std::string(8, '#'));
  auto lines = all();
  EXPECT_EQ(lines.front(), "O:one\n");
  EXPECT_EQ(lines.back(), "O:three\n");
}

TEST_P(LogFiles, a_full_disk_costs_entries_and_leaves_no_half_of_one) {
  // RLIMIT_FSIZE stands for the disk: SIGXFSZ is ignored by whoever writes.
  Writer log = writer();
  log.add(Stream::out, "fits\n");
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit full = before;
  full.rlim_cur = size() + 40;
  ::setrlimit(RLIMIT_FSIZE, &full);
  log.add(Stream::out, std::string(5000, 'x') + "\n");
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  log.add(Stream::out, "fits again\n");
  EXPECT_THAT(all(), ElementsAre("O:fits\n", "O:fits again\n"));
}

TEST(LocalFormat, pieces_of_the_best_size_end_where_blocks_end) {
  auto directory = sys::TempDir::make(sys::cwd(), "berth-logs-");
  auto log = Writer::open(directory->fd(), {Format::local, 0, 1});
  auto size = [&] {
    return static_cast<uint64_t>((*sys::stat_entry(directory->fd(), kLogFile))->st_size);
  };
  for (size_t other : {size_t{1}, size_t{100}, size_t{65'000}, size_t{65'536}}) {
    log->add(Stream::out, std::string(other, 'x'));
    for (int i = 0; i < 4; ++i) {
      size_t piece = log->best_piece(65'536);
      ASSERT_GE(piece, 1U);
      ASSERT_LE(piece, 65'536U);
      log->add(Stream::out, std::string(piece, 'x'));
    }
    EXPECT_EQ(size() % 65'536, 0U);
  }
}

TEST(LocalFormat, what_a_container_writes_is_never_taken_for_a_header) {
  auto directory = sys::TempDir::make(sys::cwd(), "berth-logs-");
  auto log = Writer::open(directory->fd(), {Format::local, 0, 1});
  log->add(Stream::out, "x\n");
  // All that is in the file, but for its key, which it cannot read.
  Frame frame{Stream::error, false, 6, 0};
  auto forged = write_frame_header(frame, LocalKey{1234});
  std::string bytes(forged.data(), forged.size());
  uint64_t at = static_cast<uint64_t>((*sys::stat_entry(directory->fd(), kLogFile))->st_size);
  log->add(Stream::out, bytes + "forged\n");
  auto file = sys::open_at(directory->fd(), kLogFile, O_WRONLY);
  ASSERT_TRUE(sys::write_at(*file, at, "####", "log").ok());
  log->add(Stream::out, "true\n");
  auto reader = Reader::open(std::move(*sys::duplicate(directory->fd())));
  std::vector<std::string> texts;
  for (auto entry = reader->next(); entry.ok() && *entry; entry = reader->next()) {
    texts.push_back((*entry)->text);
  }
  EXPECT_THAT(texts, ElementsAre("x\n", "true\n"));
}

}  // namespace
}  // namespace berth::logs
