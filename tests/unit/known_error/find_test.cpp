// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text.hpp"
#include "known_error/end.hpp"
#include "known_error/pattern.hpp"

namespace berth::known_error {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> captured(std::string_view pattern, std::string_view raw) {
  Line line = line_of(raw);
  auto captures = match(pattern, line);
  if (!captures) return {"no"};
  std::vector<std::string> out;
  for (std::string_view capture : *captures) {
    if (!capture.empty()) out.emplace_back(capture);
  }
  return out;
}

TEST(Pattern, takes_versions_numbers_words_and_text) {
  EXPECT_THAT(captured("kernel {v} is not {v}", "Kernel 396.44.0 is not 390.30."),
              ElementsAre("396.44.0", "390.30"));
  EXPECT_THAT(captured("error {n}:", "CUDA error 804: x"), ElementsAre("804"));
  EXPECT_THAT(captured("no {w} in", "no 'libA.so' in"), ElementsAre("no"));
  EXPECT_THAT(captured("no {w}, in", "no /usr/libA.so.1, in"), ElementsAre("/usr/libA.so.1"));
  EXPECT_THAT(captured("support {t} here", "Support AVX and FMA here"), ElementsAre("AVX and FMA"));
  EXPECT_THAT(captured("a {*} b {w}", "a x y z b Last"), ElementsAre("Last"));
}

TEST(Pattern, a_hole_at_its_front_reaches_back) {
  EXPECT_THAT(captured("{w}: not found", "sh: (/bin/App: not found"), ElementsAre("/bin/App"));
  EXPECT_THAT(captured("{t} with", "GeForce RTX 5090 with"), ElementsAre("GeForce RTX 5090"));
  EXPECT_THAT(captured("{w}: not found", ": not found"), ElementsAre("no"));
}

TEST(Pattern, does_not_cut_words_and_numbers) {
  EXPECT_THAT(captured("error 35", "error 350"), ElementsAre("no"));
  EXPECT_THAT(captured("error 35", "terror 35"), ElementsAre("no"));
  EXPECT_THAT(captured("error 35", "an error 35."), ElementsAre());
  EXPECT_THAT(captured("error {n}", "error 12345678901"), ElementsAre("no"));
}

TEST(Pattern, knows_the_ends_of_a_line) {
  EXPECT_THAT(captured("^illegal instruction$", "Illegal instruction "), ElementsAre());
  EXPECT_THAT(captured("^illegal instruction$", "an illegal instruction"), ElementsAre("no"));
  EXPECT_THAT(captured("^illegal instruction$", "illegal instruction set"), ElementsAre("no"));
}

TEST(Pattern, looks_further_when_the_first_place_was_not_it) {
  EXPECT_THAT(captured("error {n}:", "error of error 7: no"), ElementsAre("7"));
}

TEST(Pattern, is_not_disturbed_by_colours_and_blanks) {
  EXPECT_THAT(captured("cuda error {n}", "\x1b[1;31mCUDA\x1b[0m \t error  7"), ElementsAre("7"));
  EXPECT_THAT(captured("a b", "a\x1b"), ElementsAre("no"));
}

TEST(Table, every_row_is_whole) {
  for (const Row& row : rows()) {
    EXPECT_FALSE(row.patterns.empty()) << row.id;
    EXPECT_NE(row.id.find('.'), std::string_view::npos) << row.id;
    EXPECT_NE(row.why, "") << row.id;
    EXPECT_NE(row.remedy, "") << row.id;
    EXPECT_FALSE(row.why.ends_with('.')) << row.id;
    for (std::string_view pattern : row.patterns) {
      EXPECT_EQ(pattern, to_lower(pattern));
      size_t holes = 0;
      for (size_t at = 0; (at = pattern.find('{', at)) != std::string_view::npos; ++at) {
        EXPECT_EQ(pattern.substr(at + 2, 1), "}") << pattern;
        holes += pattern[at + 1] != '*' ? 1 : 0;
      }
      for (char hole = '1'; hole <= '3'; ++hole) {
        std::string reference = std::string("{") + hole;
        bool used = row.why.find(reference) != std::string_view::npos ||
                    row.remedy.find(reference) != std::string_view::npos;
        EXPECT_TRUE(!used || holes >= static_cast<size_t>(hole - '0')) << pattern;
      }
      EXPECT_LE(holes, kMaxHoles) << pattern;
    }
  }
}

TEST(Table, no_row_is_hidden_by_one_before_it) {
  auto first = [](std::string_view words) -> const Row* {
    Line line = line_of(words);
    for (const Row& row : rows()) {
      for (std::string_view pattern : row.patterns) {
        if (match(pattern, line)) return &row;
      }
    }
    return nullptr;
  };
  for (const Row& row : rows()) {
    std::set<const Row*> reached;
    for (std::string_view pattern : row.patterns) {
      std::string sample;
      for (std::string_view left = pattern; !left.empty();) {
        size_t hole = left.find('{');
        sample += left.substr(0, hole);
        if (hole == std::string_view::npos) break;
        char kind = left[hole + 1];
        sample += kind == 'v' ? "7.1" : kind == 'n' ? "7" : kind == 'w' ? "libQ.so.9" : "the text";
        left.remove_prefix(hole + 3);
      }
      if (sample.starts_with('^')) sample.erase(0, 1);
      if (sample.ends_with('$')) sample.pop_back();
      const Row* found = first(sample);
      ASSERT_NE(found, nullptr) << pattern;
      reached.insert(found);
    }
    EXPECT_TRUE(reached.contains(&row)) << row.id << ": " << row.patterns[0];
  }
}

TEST(Find, tells_causes_before_effects_and_the_newest_first) {
  auto all = find(
      "cuda out of memory\n"
      "no CUDA-capable device is detected\n"
      "kernel version 396.44.0 does not match DSO version 390.30.0 -- x\n"
      "not built with CUDA kernel binaries compatible with compute capability 9.0\n");
  std::vector<std::string_view> ids;
  for (const Found& found : all) ids.push_back(found.id);
  EXPECT_THAT(ids, ElementsAre("driver.version-mismatch", "cuda.no-device", "cuda.out-of-memory",
                               "cuda.jit"));
}

TEST(Find, knows_a_cuda_error_by_its_number_in_either_numbering) {
  auto id = [](std::string_view log) {
    auto all = find(log);
    return all.empty() ? std::string_view() : all.front().id;
  };
  EXPECT_EQ(id("Check failed: error == cudaSuccess (209 vs. 0)"), "cuda.no-kernel-image");
  EXPECT_EQ(id("Check failed: error == cudaSuccess (48 vs. 0)"), "cuda.no-kernel-image");
  EXPECT_EQ(id("CUDA error 999 at x.cu:7"), "cuda.unknown");
  EXPECT_EQ(id("CUDA failure: 803"), "driver.system-mismatch");
  EXPECT_EQ(id("CUDA error 0"), "");
  EXPECT_EQ(id("error 804"), "");
}

TEST(Find, names_the_highest_version_that_a_loader_misses) {
  auto all = find(
      "a: libc.so.6: version `GLIBC_2.9' not found (required by a)\n"
      "a: libc.so.6: version `GLIBC_2.38' not found (required by b)\n"
      "a: libc.so.6: version `GLIBC_2.4' not found (required by a)\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(to_line(all[0]),
            "why: b needs glibc 2.38, and the image's is older; try: an image with glibc 2.38 or "
            "newer, or a build of the program for an older one");
  EXPECT_EQ(all[0].line, 2U);  // the line that is shown, not the last of its kind
}

TEST(Find, a_line_shown_is_short_and_words_are_harmless) {
  auto all =
      find("error while loading shared libraries: lib\x7f.so: cannot open shared object file " +
           std::string(1000, 'x'));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].text.size(), 300U);
  EXPECT_THAT(to_line(all[0]), StartsWith("why: the image has no lib\\x7f.so where"));
}

TEST(Find, an_overwritten_line_is_several) {
  EXPECT_EQ(find("10%\r20%\rCUDA out of memory\r\n").size(), 1U);
}

TEST(Find, looks_at_the_end_of_a_log_alone) {
  const std::string known_error = "RuntimeError: CUDA out of memory\n";
  std::string log;
  while (log.size() <= kMaxLog) log += "step 4711: loss 0.25\n";
  EXPECT_EQ(find(log + known_error).size(), 1U);
  EXPECT_EQ(find(known_error + log).size(), 0U);
}

TEST(Find, takes_no_time_with_hostile_text) {
  auto measure = [](const std::string& log) {
    auto begin = std::chrono::steady_clock::now();
    (void)find(log);
    return std::chrono::steady_clock::now() - begin;
  };
  std::string repeated;
  while (repeated.size() < kMaxLog)
    repeated += "error relocating error while loading shared version `";
  for (const std::string& log : {std::string(kMaxLog, 'a'), std::string(kMaxLog, '\n'), repeated,
                                 std::string(kMaxLog, '\r'), std::string(kMaxLog, '\x1b')}) {
    EXPECT_LT(measure(log), std::chrono::seconds(5));  // with sanitizers
  }
}

TEST(Tail, keeps_the_last_bytes) {
  Tail tail;
  std::string all;
  for (size_t i = 0; i < 1000; ++i) {
    std::string piece(i % 997, static_cast<char>('a' + i % 26));
    tail.add(piece);
    all += piece;
    ASSERT_EQ(tail.text(),
              std::string_view(all).substr(all.size() - std::min(all.size(), kMaxLog)));
  }
  tail.add(std::string(2 * kMaxLog, 'z'));
  EXPECT_EQ(tail.text(), std::string(kMaxLog, 'z'));
}

TEST(End, only_a_failure_of_its_own_has_a_reason) {
  for (int status : {1, 2, 3, 125, 126, 127, 128, 132, 134, 135, 139, 255}) {
    EXPECT_TRUE(is_own_failure({.status = status})) << status;
  }
  for (int status : {0, 129, 130, 137, 141, 143}) {
    EXPECT_FALSE(is_own_failure({.status = status})) << status;
  }
}

TEST(End, a_sigill_is_told_with_what_is_known) {
  auto line = [](const Circumstances& known) {
    auto reason = reason_of({.status = 132}, "", known);
    return reason ? to_line(*reason) : "";
  };
  EXPECT_EQ(
      line({}),
      "why: a program used an instruction that this processor does not have, or stopped itself "
      "with ud2 (SIGILL); try: a build for this processor, or another machine");
  EXPECT_EQ(
      line({.processor = "Intel(R) Xeon(R) CPU", .cpu_level = 3}),
      "why: a program used an instruction that this processor (Intel(R) Xeon(R) CPU, x86-64-v3) "
      "does not have, or stopped itself with ud2 (SIGILL); try: a build for x86-64-v3 or lower, "
      "or another machine");
  EXPECT_EQ(line({.cpu_level = 3, .needs = "x86-64-v4"}),
            "why: the program needs x86-64-v4, which this processor (x86-64-v3) does not have "
            "(SIGILL); try: a build for x86-64-v3 or lower, or another machine");
}

TEST(End, an_ordinary_failure_without_a_complaint_has_no_reason) {
  EXPECT_FALSE(reason_of({.status = 1}, "FileNotFoundError: 'data.csv'\n", {}));
  EXPECT_FALSE(reason_of({.status = 127}, "sh: nonesuch: not found\n", {}));
}

TEST(End, a_command_that_is_no_program_is_told_by_the_images_architecture) {
  EXPECT_EQ(no_program({.machine = "amd64", .image = "arm64"}).why,
            "the image is for arm64, and this machine is amd64");
  EXPECT_THAT(no_program({.machine = "amd64", .image = "amd64"}).why,
              StartsWith("the command is for"));
  EXPECT_THAT(no_program({}).remedy, HasSubstr("an image for this machine"));
}

}  // namespace
}  // namespace berth::known_error
