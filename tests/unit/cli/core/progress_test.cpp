// SPDX-License-Identifier: Apache-2.0
#include "cli/core/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/core/table.hpp"
#include "support/terminal.hpp"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;
using test::FakeTerminal;
using testing::ElementsAre;
using testing::SizeIs;

const Clock::time_point kStart = Clock::time_point{} + 1h;
const ScreenSize kWide{100, 24};

TEST(ProgressState, shows_bar_bytes_rate_and_time_left) {
  ProgressState state(Direction::pull);
  state.update({"0123456789ab", Phase::downloading, 0, 100'000'000}, kStart);
  state.update({"0123456789ab", Phase::downloading, 50'000'000, 100'000'000}, kStart + 2s);
  EXPECT_THAT(state.lines(kWide, kStart + 2s),
              ElementsAre("0123456789ab: Downloading [===================>                  ]  "
                          "50MB/100MB  25MB/s  2s",
                          "Total 0/1 layers          [===================>                  ]  "
                          "50MB/100MB  25MB/s  2s"));
}

TEST(ProgressState, sums_over_layers) {
  ProgressState state(Direction::pull);
  state.update({"aaaaaaaaaaaa", Phase::exists, 0, 70}, kStart);
  state.update({"bbbbbbbbbbbb", Phase::done, 10'000'000, 10'000'000}, kStart);
  state.update({"cccccccccccc", Phase::waiting, 0, 30'000'000}, kStart);
  EXPECT_THAT(state.lines(kWide, kStart),
              ElementsAre("aaaaaaaaaaaa: Already exists", "bbbbbbbbbbbb: Pull complete",
                          "cccccccccccc: Waiting",
                          "Total 2/3 layers          [=========>                            ]  "
                          "10MB/40MB"));
}

TEST(ProgressState, counts_what_is_being_unpacked_as_arrived) {
  ProgressState state(Direction::pull);
  state.update({"aaaaaaaaaaaa", Phase::downloading, 10'000'000, 10'000'000}, kStart);
  state.update({"bbbbbbbbbbbb", Phase::downloading, 0, 10'000'000}, kStart);
  state.update({"aaaaaaaaaaaa", Phase::unpacking, 1, 10'000'000}, kStart + 1s);
  state.update({"bbbbbbbbbbbb", Phase::downloading, 2'000'000, 10'000'000}, kStart + 2s);
  EXPECT_EQ(state.lines({60, 24}, kStart + 2s)[2],
            "Total 0/2 layers          12MB/20MB  1MB/s  8s");
}

TEST(ProgressState, never_is_wider_than_the_window) {
  ProgressState state(Direction::pull);
  state.update({"0123456789ab", Phase::downloading, 999'000'000, 9'990'000'000}, kStart);
  state.update({"0123456789ab", Phase::downloading, 1'999'000'000, 9'990'000'000}, kStart + 1s);
  for (size_t columns : {1, 2, 5, 13, 20, 40, 60, 61, 62, 63, 64, 80, 200}) {
    for (const std::string& line : state.lines({columns, 24}, kStart + 1s)) {
      EXPECT_LE(text_width(line), columns) << line;
    }
  }
  // Without room for a bar the figures stay.
  EXPECT_EQ(state.lines({60, 24}, kStart + 1s)[0],
            "0123456789ab: Downloading 2GB/9.99GB  1GB/s  8s");
  // Then the time left goes, then the rate.
  EXPECT_EQ(state.lines({46, 24}, kStart + 1s)[0], "0123456789ab: Downloading 2GB/9.99GB  1GB/s");
  EXPECT_EQ(state.lines({42, 24}, kStart + 1s)[0], "0123456789ab: Downloading 2GB/9.99GB");
}

TEST(ProgressState, folds_finished_then_waiting_layers_where_the_window_is_low) {
  ProgressState state(Direction::pull);
  for (char c = 'a'; c < 'k'; ++c) {
    Phase phase = c < 'e' ? Phase::done : c < 'g' ? Phase::unpacking : Phase::waiting;
    state.update({std::string(12, c), phase, 1, 2}, kStart);
  }
  EXPECT_THAT(state.lines({80, 24}, kStart), SizeIs(11));
  auto low = state.lines({80, 10}, kStart);
  ASSERT_THAT(low, SizeIs(8));
  EXPECT_EQ(low[0], "4 layers done");
  EXPECT_EQ(low[1].substr(0, 24), "eeeeeeeeeeee: Extracting");
  auto lower = state.lines({80, 6}, kStart);
  ASSERT_THAT(lower, SizeIs(5));
  EXPECT_EQ(lower[3], "4 layers waiting");
  EXPECT_EQ(lower[4].substr(0, 17), "Total 4/10 layers");
  EXPECT_THAT(state.lines({80, 1}, kStart), SizeIs(2));
}

TEST(Rate, follows_the_last_seconds_and_forgets_a_retry) {
  Rate rate;
  EXPECT_EQ(rate.per_second(kStart), std::nullopt);
  rate.add(0, kStart);
  EXPECT_EQ(rate.per_second(kStart), std::nullopt);
  rate.add(1000, kStart + 1s);
  EXPECT_EQ(rate.per_second(kStart + 1s), 1000.0);
  for (uint64_t i = 2; i <= 60; ++i) rate.add(1000 + 10 * i, kStart + std::chrono::seconds(i));
  EXPECT_NEAR(*rate.per_second(kStart + 60s), 10.0, 0.01);
  // Nothing arrives any more: the rate falls.
  EXPECT_LT(*rate.per_second(kStart + 70s), 5.0);
  rate.add(0, kStart + 71s);
  EXPECT_EQ(rate.per_second(kStart + 71s), std::nullopt);
}

TEST(RowsTaken, counts_lines_that_a_narrower_window_folds) {
  EXPECT_EQ(rows_taken({"12345", "", "1234567890"}, 5), 4u);
  EXPECT_EQ(rows_taken({"12345", "", "1234567890"}, 80), 3u);
}

TEST(ProgressPrinter, redraws_at_most_twenty_times_a_second) {
  FakeTerminal terminal;
  {
    ProgressPrinter printer(terminal, Stream::out, Direction::pull, ProgressPrinter::Mode::bars);
    for (int i = 0; i < 1000; ++i) {
      printer.layer({"0123456789ab", Phase::downloading, static_cast<uint64_t>(i), 1000},
                    kStart + std::chrono::milliseconds(i));
    }
    EXPECT_LE(terminal.writes, 20);
    EXPECT_GE(terminal.writes, 18);
  }
  EXPECT_THAT(terminal.out, testing::HasSubstr("999B/1kB"));  // the last state is drawn
  EXPECT_EQ(terminal.err, "");
}

TEST(ProgressPrinter, draws_over_its_own_lines) {
  FakeTerminal terminal;
  ProgressPrinter printer(terminal, Stream::err, Direction::pull, ProgressPrinter::Mode::bars);
  printer.layer({"0123456789ab", Phase::waiting, 0, 10}, kStart);
  EXPECT_EQ(terminal.err.substr(0, 2), "01");
  terminal.err.clear();
  printer.tick(kStart + 1s);
  EXPECT_EQ(terminal.err.substr(0, 5), "\x1b[2A\r");
  // 22 columns: the total line, 60 columns wide, now takes three rows and the layer one.
  terminal.err.clear();
  terminal.screen.columns = 22;
  printer.tick(kStart + 2s);
  EXPECT_EQ(terminal.err.substr(0, 5), "\x1b[5A\r");
}

TEST(ProgressPrinter, leaves_text_above_the_bars) {
  FakeTerminal terminal;
  ProgressPrinter printer(terminal, Stream::out, Direction::pull, ProgressPrinter::Mode::bars);
  printer.text("latest: Pulling from library/debian");
  EXPECT_EQ(terminal.out, "latest: Pulling from library/debian\n");
  printer.layer({"0123456789ab", Phase::waiting, 0, 10}, kStart);
  terminal.out.clear();
  printer.text(
      "a\x1b"
      "b");
  EXPECT_EQ(terminal.out.substr(0, 18), "\x1b[2A\r\x1b[Ja\\x1bb\n012");
}

TEST(ProgressPrinter, prints_each_step_once_on_a_pipe) {
  FakeTerminal terminal;
  terminal.terminal = false;
  ProgressPrinter printer(terminal, Stream::out, Direction::pull,
                          progress_mode(terminal, Stream::out, false));
  printer.text("latest: Pulling from library/debian");
  for (uint64_t done : {0, 5, 10}) {
    printer.layer({"0123456789ab", Phase::downloading, done, 10}, kStart);
  }
  printer.layer({"0123456789ab", Phase::verifying, 10, 10}, kStart);
  printer.layer({"0123456789ab", Phase::unpacking, 10, 10}, kStart);
  printer.layer({"0123456789ab", Phase::done, 10, 10}, kStart);
  printer.layer({"ffffffffffff", Phase::exists, 0, 10}, kStart);
  printer.finish();
  EXPECT_EQ(terminal.out,
            "latest: Pulling from library/debian\n"
            "0123456789ab: Pulling fs layer\n"
            "0123456789ab: Pull complete\n"
            "ffffffffffff: Already exists\n");
}

TEST(ProgressPrinter, says_nothing_when_quiet) {
  FakeTerminal terminal;
  ProgressPrinter printer(terminal, Stream::out, Direction::push,
                          progress_mode(terminal, Stream::out, true));
  printer.text("x");
  printer.layer({"0123456789ab", Phase::done, 10, 10}, kStart);
  printer.finish();
  EXPECT_EQ(terminal.writes, 0);
}

}  // namespace
}  // namespace berth::cli
