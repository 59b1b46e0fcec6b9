// SPDX-License-Identifier: Apache-2.0
#include "cli/core/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/core/progress.hpp"
#include "support/terminal.hpp"

namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Error sample() {
  Error error = sys_error(EACCES, "open '/dev/nvidia2'").with_context("cannot give GPU 2");
  return std::move(error).with_hint("berth gpu list");
}

TEST(Report, prints_the_error_on_one_line) {
  test::FakeTerminal terminal;
  Report(terminal, "berth").error(sample());
  EXPECT_EQ(terminal.err,
            "berth: cannot give GPU 2: open '/dev/nvidia2': Permission denied; "
            "try: berth gpu list\n");
  EXPECT_EQ(terminal.out, "");
}

TEST(Report, tells_the_place_when_debugging) {
  test::FakeTerminal terminal;
  Report report(terminal, "berth");
  report.configure(LogFormat::text, Verbosity::debug);
  report.error(sample());
  EXPECT_THAT(terminal.err, testing::ContainsRegex("\n  at .*report_test.cpp:[0-9]+\n$"));
}

TEST(Report, prints_the_fields_as_json) {
  test::FakeTerminal terminal;
  Report report(terminal, "berth");
  report.configure(LogFormat::json, Verbosity::normal);
  report.error(sample());
  EXPECT_THAT(terminal.err,
              StartsWith(R"({"level":"error","message":"cannot give GPU 2: open '/dev/nvidia2': )"
                         R"(Permission denied; try: berth gpu list","kind":"denied","errno":13,)"
                         R"("what":"open '/dev/nvidia2'","hint":"berth gpu list",)"
                         R"("context":["cannot give GPU 2"],"where":")"));
}

TEST(Report, keeps_debug_texts_for_debugging) {
  test::FakeTerminal terminal;
  Report report(terminal, "berth");
  report.debug("a");
  report.warn("b, ignoring\x1b[2J");
  report.configure(LogFormat::text, Verbosity::debug);
  report.debug("c");
  EXPECT_EQ(terminal.err, "berth: warning: b, ignoring\\x1b[2J\nberth: debug: c\n");
}

TEST(Report, puts_warnings_above_the_bars) {
  test::FakeTerminal terminal;
  Report report(terminal, "berth");
  ProgressPrinter printer(terminal, Stream::err, Direction::pull, ProgressPrinter::Mode::bars);
  report.above(&printer.bars());
  printer.layer({"0123456789ab", Phase::waiting, 0, 10});
  terminal.err.clear();
  report.warn("slow, ignoring");
  EXPECT_THAT(terminal.err,
              StartsWith("\x1b[2A\r\x1b[Jberth: warning: slow, ignoring\n0123456789ab: Waiting"));
  report.above(nullptr);
}

TEST(PlaceText, cuts_the_paths_of_the_build_machine) {
  EXPECT_EQ(place_text({"/home/me/berth/src/engine/run/run.cpp", 7}), "src/engine/run/run.cpp:7");
  EXPECT_EQ(place_text({"main.cpp", 7}), "main.cpp:7");
}

}  // namespace
}  // namespace berth::cli
