// SPDX-License-Identifier: Apache-2.0
#include "events/journal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::events {
namespace {

class Journal : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "berth-journal-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    file_ = directory_ + "/" + kJournalFile;
  }
  void TearDown() override { ignore(sys::remove_tree(sys::cwd(), directory_)); }

  void tell(const std::string& id) const {
    ASSERT_TRUE(append(file_, {"container", "start", id}).ok());
  }
  static std::vector<std::string> ids(Reader& reader) {
    std::vector<std::string> all;
    while (true) {
      auto event = reader.next();
      if (!event.ok() || !*event) return all;
      all.push_back((*event)->id);
    }
  }
  int64_t size(const std::string& path) const {
    auto status = sys::stat_entry(sys::cwd(), path);
    return status.ok() && *status ? static_cast<int64_t>((*status)->st_size) : -1;
  }

  std::string directory_, file_;
};

TEST_F(Journal, gives_back_what_was_told) {
  ASSERT_TRUE(append(file_, {"image", "pull", "a\nb", {{"name", "\x1b[31m\""}}}).ok());
  Reader reader(file_);
  auto event = reader.next();
  ASSERT_TRUE(event.ok() && *event);
  EXPECT_EQ((*event)->type, "image");
  EXPECT_EQ((*event)->action, "pull");
  EXPECT_EQ((*event)->id, "a\nb");
  EXPECT_EQ((*event)->attributes.at("name"), "\x1b[31m\"");
  EXPECT_GT((*event)->time_ns, 1'700'000'000'000'000'000);
  EXPECT_FALSE(*reader.next());
}

TEST_F(Journal, is_read_on_while_it_grows) {
  Reader reader(file_);
  EXPECT_TRUE(ids(reader).empty());
  tell("1");
  EXPECT_EQ(ids(reader), (std::vector<std::string>{"1"}));
  tell("2");
  tell("3");
  EXPECT_EQ(ids(reader), (std::vector<std::string>{"2", "3"}));
}

TEST_F(Journal, makes_place_and_is_followed_into_the_new_file) {
  Reader reader(file_);
  std::vector<std::string> seen;
  const std::string filling(1000, 'x');
  int told = 0;
  while (size(file_ + kOlder) < 0) {
    tell(std::to_string(told++) + filling);
    ASSERT_LT(told, 2000);
  }
  tell("last");
  for (int look = 0; look < 3; ++look) {
    for (std::string& id : ids(reader)) seen.push_back(std::move(id));
  }
  ASSERT_EQ(seen.size(), static_cast<size_t>(told) + 1);
  EXPECT_EQ(seen.front(), "0" + filling);
  EXPECT_EQ(seen.back(), "last");
  EXPECT_LT(size(file_), kMaxJournal);
}

TEST_F(Journal, is_read_from_the_older_file_on_at_once) {
  ASSERT_TRUE(append(file_, {"container", "start", "old"}).ok());
  ASSERT_TRUE(sys::rename(sys::cwd(), file_, sys::cwd(), file_ + kOlder).ok());
  tell("new");
  Reader reader(file_);
  EXPECT_EQ(ids(reader), (std::vector<std::string>{"old", "new"}));
}

TEST_F(Journal, of_many_writers_loses_and_mixes_nothing) {
  constexpr int kWriters = 8;
  constexpr int kEvents = 100;
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kEvents; ++i) tell(std::to_string(writer) + std::string(300, 'y'));
    });
  }
  for (std::thread& writer : writers) writer.join();
  Reader reader(file_);
  EXPECT_EQ(ids(reader).size(), size_t{kWriters * kEvents});
}

TEST_F(Journal, passes_over_what_makes_no_sense) {
  tell("1");
  std::string junk = "{\"time\":1}\nnot json\n\n" + std::string(3 * kMaxEvent, 'z') + "\n";
  auto file = sys::open_at(sys::cwd(), file_, O_WRONLY | O_APPEND);
  ASSERT_TRUE(file.ok() && sys::write_all(*file, junk, "junk").ok());
  tell("2");
  Reader reader(file_);
  EXPECT_EQ(ids(reader), (std::vector<std::string>{"1", "2"}));
}

TEST_F(Journal, drops_attributes_that_are_too_long) {
  ASSERT_TRUE(
      append(file_, {"container", "create", "1", {{"label", std::string(kMaxEvent, 'x')}}}).ok());
  Reader reader(file_);
  auto event = reader.next();
  ASSERT_TRUE(event.ok() && *event);
  EXPECT_TRUE((*event)->attributes.empty());
}

}  // namespace
}  // namespace berth::events
