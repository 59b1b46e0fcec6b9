// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "bench/common/arguments.hpp"
#include "bench/common/statistics.hpp"
#include "bench/common/threads.hpp"

namespace berth::bench {
namespace {

struct Parsed {
  uint64_t passes = 7;
  std::string network = "one";
  std::string error;
};

Parsed parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Parsed into;
  auto done = parse(static_cast<int>(words.size()), argv.data(),
                    {{.name = "passes", .number = &into.passes, .lowest = 1, .highest = 9},
                     {.name = "network", .text = &into.network, .choices = {"one", "two"}}});
  if (!done.ok()) into.error = to_line(done.error());
  return into;
}

TEST(Arguments, are_numbers_and_words_in_either_spelling) {
  Parsed into = parsed({"--passes", "3", "--network=two"});
  EXPECT_EQ(into.error, "");
  EXPECT_EQ(into.passes, 3U);
  EXPECT_EQ(into.network, "two");
  EXPECT_EQ(parsed({}).passes, 7U);
}

TEST(Arguments, that_are_wrong_are_named) {
  EXPECT_EQ(parsed({"--passes", "0"}).error, "--passes: expected a number from 1 to 9, got '0'");
  EXPECT_EQ(parsed({"--passes", "3x"}).error, "--passes: expected a number from 1 to 9, got '3x'");
  EXPECT_EQ(parsed({"--network", "three"}).error, "--network: expected one, two, got 'three'");
  EXPECT_EQ(parsed({"--passes"}).error, "--passes needs a value");
  EXPECT_EQ(parsed({"--bogus", "1"}).error, "unknown flag '--bogus'");
  EXPECT_EQ(parsed({"3"}).error, "unexpected word '3'");
}

TEST(ExitStatus, is_two_for_a_wrong_call_and_one_for_a_failure_after_one_line) {
  auto ended = [](const std::function<Result<void>()>& body) {
    ::testing::internal::CaptureStderr();
    int status = exit_status("bench", body);
    return std::to_string(status) + " " + ::testing::internal::GetCapturedStderr();
  };
  auto failing = [](Kind kind) {
    return [kind]() -> Result<void> { return make_error(kind, "it"); };
  };
  EXPECT_EQ(ended([]() -> Result<void> { return {}; }), "0 ");
  EXPECT_EQ(ended(failing(Kind::usage)), "2 bench: it\n");
  EXPECT_EQ(ended(failing(Kind::io)), "1 bench: it\n");
  EXPECT_EQ(ended([]() -> Result<void> { throw std::runtime_error("no GPU"); }),
            "1 bench: no GPU\n");
}

TEST(Threads, share_everything_once) {
  for (size_t count : {1, 2, 5}) {
    Threads threads(count);
    for (int64_t size : {0, 1, 15, 16, 17, 1000}) {
      std::vector<std::atomic<int>> touched(static_cast<size_t>(size));
      threads.share(size, 16, [&](int64_t first, int64_t last) {
        for (; first < last; ++first) ++touched[static_cast<size_t>(first)];
      });
      for (auto& times : touched) EXPECT_EQ(times.load(), 1);
    }
  }
}

TEST(Statistics, are_those_of_the_textbook) {
  std::vector<double> values = {4, 2, 9, 5};
  EXPECT_DOUBLE_EQ(mean(values), 5);
  EXPECT_NEAR(deviation(values), 2.943920, 1e-6);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 4.5);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 9);
  EXPECT_DOUBLE_EQ(deviation({3}), 0);
}

}  // namespace
}  // namespace berth::bench
