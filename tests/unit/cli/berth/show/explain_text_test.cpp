// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/explain_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "cli/berth/show/doctor_text.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

engine::Explained example() {
  engine::Explained out{"0123456789abcdef", "c1", "debian", {}};
  out.explanation.sources = {{"--gpus", "device=0", true, "a flag wins"},
                             {"NVIDIA_VISIBLE_DEVICES of the image", "all", false,
                              "what an image says grants nothing here"}};
  out.explanation.items = {{"node", "/dev/nvidia0", true, "GPU 0", ""},
                           {"library", "/usr/local/nvidia/lib64/libcuda.so.570.133.20", true,
                            "capability compute", "/usr/lib64/libcuda.so.570.133.20"},
                           {"node", "/dev/nvidia1", false, "GPU 1 was not granted", ""}};
  return out;
}

TEST(ExplainText, has_who_asked_what_is_given_and_what_is_not) {
  EXPECT_EQ(explain_text(example(), 0),
            "c1 (0123456789ab) of debian has GPUs or devices:\n"
            "\n"
            "asked by\n"
            "  counts   --gpus 'device=0'  a flag wins\n"
            "  ignored  NVIDIA_VISIBLE_DEVICES of the image 'all'\n"
            "             what an image says grants nothing here\n"
            "\n"
            "given\n"
            "  node     /dev/nvidia0  GPU 0\n"
            "  library  /usr/local/nvidia/lib64/libcuda.so.570.133.20\n"
            "             capability compute (/usr/lib64/libcuda.so.570.133.20)\n"
            "\n"
            "not given\n"
            "  node  /dev/nvidia1  GPU 1 was not granted\n");
}

TEST(ExplainText, says_so_when_nothing_asked) {
  std::string text = explain_text({"0123456789abcdef", "c1", "debian", {}}, 0);
  EXPECT_THAT(text, HasSubstr("c1 (0123456789ab) of debian has no GPU:\nnothing requests one"));
}

TEST(ExplainText, folds_reasons_at_the_width_of_the_terminal) {
  engine::Explained explained = example();
  explained.explanation.items = {{"node", "/dev/nvidia0", true,
                                  "a reason that is much longer than what is left of a line of "
                                  "eighty columns after the names",
                                  ""}};
  const std::string text = explain_text(explained, 80);
  for (std::string_view line : split(text, '\n')) {
    EXPECT_LE(text_width(line), 80U) << line;
  }
}

TEST(ExplainText, lets_no_foreign_text_move_the_cursor) {
  engine::Explained explained = example();
  explained.explanation.sources[1].text = "\x1b[2J\n";
  EXPECT_THAT(explain_text(explained, 0), Not(HasSubstr("\x1b")));
}

TEST(DoctorText, groups_checks_and_says_what_to_try) {
  std::vector<doctor::Answer> answers = {
      {"host.kernel", {doctor::Status::ok, "Linux 6.12", "", {}}},
      {"gpu.uvm", {doctor::Status::problem, "not loaded", "modprobe nvidia-uvm", {}}},
      {"gpu.mig-nodes", {doctor::Status::not_applicable, "no slice", "", {}}}};
  EXPECT_EQ(doctor_text(answers, {}),
            "host\n"
            "  ok       kernel  Linux 6.12\n"
            "\n"
            "gpu\n"
            "  problem  uvm     not loaded\n"
            "                   try: modprobe nvidia-uvm\n"
            "\n"
            "1 problem, 0 warnings, 1 ok, 1 does not apply\n");
}

TEST(DoctorText, says_why_nothing_applies) {
  std::vector<doctor::Answer> answers = {
      {"gpu.present", {doctor::Status::not_applicable, "this machine has no GPU", "", {}}},
      {"gpu.module", {doctor::Status::not_applicable, "no NVIDIA GPU", "", {}}}};
  EXPECT_EQ(doctor_text(answers, {}),
            "this machine has no GPU\n\n0 problems, 0 warnings, 0 ok, 2 do not apply\n");
}

TEST(DoctorText, is_short_when_told_so) {
  std::vector<doctor::Answer> answers = {
      {"host.kernel", {doctor::Status::ok, "Linux 6.12", "", {}}}};
  DoctorLook look;
  look.quiet = true;
  EXPECT_EQ(doctor_text(answers, look), "0 problems, 0 warnings, 1 ok, 0 do not apply\n");
}

TEST(Fold, breaks_at_blanks_and_leaves_long_words_whole) {
  EXPECT_THAT(fold("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(fold("a /very/long/path b", 5), ElementsAre("a", "/very/long/path", "b"));
  EXPECT_THAT(fold("", 5), ElementsAre(""));
  EXPECT_THAT(fold("one two", 0), ElementsAre("one two"));
}

}  // namespace
}  // namespace berth::cli
