// SPDX-License-Identifier: Apache-2.0
// Real messages and what is said of them: tests/data/known errors. A file has a head of "key:
// value" lines, a blank line, and what was printed:
//   source  the thread it was read in, or whose text it is
//   expect  the ids of all that is found, or "nothing"
//   why     a part of the first one's words
//   said    an exit status with which the first one is told as the reason
//   silent  one with which nothing is
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "known_error/end.hpp"

namespace berth::known_error {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Message {
  std::string name;
  std::map<std::string, std::string> head;
  std::string text;
};

void PrintTo(const Message& message, std::ostream* out) {
  *out << message.name;
}

std::vector<Message> messages() {
  std::vector<Message> all;
  for (const auto& entry : fs::directory_iterator(BERTH_TEST_DATA "/known_errors")) {
    std::ifstream file(entry.path());
    Message message{entry.path().stem(), {}, {}};
    for (std::string line; std::getline(file, line) && !line.empty();) {
      size_t colon = line.find(": ");
      message.head[line.substr(0, colon)] = line.substr(colon + 2);
    }
    std::stringstream rest;
    rest << file.rdbuf();
    message.text = rest.str();
    all.push_back(std::move(message));
  }
  return all;
}

class Corpus : public ::testing::TestWithParam<Message> {};

TEST_P(Corpus, is_recognised_as_what_it_is) {
  const Message& message = GetParam();
  EXPECT_NE(message.head.at("source"), "");
  std::set<std::string> expected, found;
  for (std::string_view id : split(message.head.at("expect"), ',')) {
    if (trim(id) != "nothing") expected.emplace(trim(id));
  }
  auto all = find(message.text);
  for (const Found& one : all) {
    found.emplace(one.id);
    EXPECT_NE(one.remedy, "");
    EXPECT_EQ(to_line(one).find('{'), std::string::npos) << to_line(one);
  }
  EXPECT_EQ(found, expected);
  if (!message.head.contains("why")) return;
  ASSERT_FALSE(all.empty());
  EXPECT_THAT(all.front().why, HasSubstr(message.head.at("why")));
}

TEST_P(Corpus, is_a_reason_only_for_an_end_that_agrees) {
  const Message& message = GetParam();
  auto said = [&](End end) { return reason_of(end, message.text, {}).has_value(); };
  EXPECT_FALSE(said({.status = 0}));
  EXPECT_FALSE(said({.status = 137}));
  EXPECT_FALSE(said({.status = 143}));
  EXPECT_FALSE(said({.status = 1, .stopped = true}));
  EXPECT_FALSE(said({.status = 137, .oom_killed = true}));
  if (message.head.at("expect") == "nothing") {
    EXPECT_FALSE(said({.status = 1}));
    EXPECT_FALSE(said({.status = 127}));
  }
  if (message.head.contains("silent")) {
    EXPECT_FALSE(said({.status = std::stoi(message.head.at("silent"))}));
  }
  if (!message.head.contains("said")) return;
  auto reason = reason_of({.status = std::stoi(message.head.at("said"))}, message.text, {});
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->id, trim(split(message.head.at("expect"), ',')[0]));
}

INSTANTIATE_TEST_SUITE_P(Messages, Corpus, ::testing::ValuesIn(messages()),
                         [](const auto& message) {
                           std::string name = message.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Table, has_a_message_for_nearly_every_complaint) {
  std::set<std::string_view> known, seen;
  for (const Row& row : rows()) known.insert(row.id);
  for (const Message& message : messages()) {
    for (const Found& one : find(message.text)) seen.insert(one.id);
  }
  std::vector<std::string_view> unseen;
  std::set_difference(known.begin(), known.end(), seen.begin(), seen.end(),
                      std::back_inserter(unseen));
  // Of these no message with its thread is at hand.
  EXPECT_THAT(unseen, ::testing::IsSubsetOf({"fabric.memlock", "loader.class", "loader.damaged",
                                             "loader.symbol", "mpi.init", "mpi.root", "nccl.cuda",
                                             "rocm.library", "rocm.no-device", "rocm.out-of-memory",
                                             "library.not-started"}));
}

/// The rows as docs/known-errors.md shows them.
std::string documented() {
  constexpr std::string_view kLevels[] = {"cause", "effect", "sign"};
  std::string out = "| Id | Kind | Message | Why | Try |\n| --- | --- | --- | --- | --- |\n";
  for (const Row& row : rows()) {
    out += "| `" + std::string(row.id) + "` | " +
           std::string(kLevels[static_cast<size_t>(row.level)]) + " | `` " +
           std::string(row.patterns.front()) + " `` | " + std::string(row.why) + " | " +
           std::string(row.remedy) + " |\n";
  }
  return out;
}

TEST(Table, is_the_one_in_the_documentation) {
  constexpr std::string_view kBegin = "<!-- table -->\n", kEnd = "<!-- end of table -->\n";
  const std::string path = BERTH_TEST_DATA "/../../docs/known-errors.md";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string text = read.str();
  size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  begin += kBegin.size();
  if (std::getenv("BERTH_ACCEPT") != nullptr) {
    std::ofstream(path) << text.replace(begin, end - begin, documented());
    return;
  }
  EXPECT_EQ(text.substr(begin, end - begin), documented()) << "BERTH_ACCEPT=1 writes it";
}

}  // namespace
}  // namespace berth::known_error
