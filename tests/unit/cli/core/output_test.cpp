// SPDX-License-Identifier: Apache-2.0
// Widths, tables and the words for times and ids.
#include <gtest/gtest.h>

#include "cli/core/table.hpp"
#include "cli/core/words.hpp"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

TEST(TextWidth, counts_columns_not_bytes) {
  EXPECT_EQ(text_width("berth"), 5u);
  EXPECT_EQ(text_width("größe"), 5u);
  EXPECT_EQ(text_width("e\xcc\x81t"), 2u);  // e and a combining acute
  EXPECT_EQ(text_width("港口"), 4u);
  EXPECT_EQ(text_width("🚢"), 2u);
  EXPECT_EQ(text_width("\xff\xc3"), 2u);  // not UTF-8
  EXPECT_EQ(text_width(""), 0u);
}

TEST(TextWidth, truncates_between_characters) {
  EXPECT_EQ(truncate("container", 20), "container");
  EXPECT_EQ(truncate("container", 9), "container");
  EXPECT_EQ(truncate("container", 8), "contain…");
  EXPECT_EQ(truncate("港口港口", 4), "港…");
  EXPECT_EQ(truncate("港口港口", 5), "港口…");
  EXPECT_EQ(truncate("abc", 1), "…");
  EXPECT_EQ(truncate("abc", 0), "");
}

TEST(Table, aligns_by_width_and_leaves_no_blanks_at_line_ends) {
  Table table({"NAME", "SIZE", "TAG"});
  table.add({"größe", "1MB", ""});
  table.add({"港", "206MB", "latest"});
  EXPECT_EQ(table.text(),
            "NAME    SIZE    TAG\n"
            "größe   1MB\n"
            "港      206MB   latest\n");
}

TEST(Table, keeps_foreign_text_on_its_line) {
  Table table({"COMMAND"});
  table.add({"a\nb\x1b[2J"});
  EXPECT_EQ(table.text(), "COMMAND\na\\nb\\x1b[2J\n");
}

TEST(PropertyList, aligns_values) {
  EXPECT_EQ(property_list({{"Version", "0.1"}, {"OS", "linux"}}),
            "Version:  0.1\nOS:       linux\n");
}

TEST(HumanDuration, uses_dockers_words) {
  EXPECT_EQ(human_duration(0s), "Less than a second");
  EXPECT_EQ(human_duration(1s), "1 second");
  EXPECT_EQ(human_duration(59s), "59 seconds");
  EXPECT_EQ(human_duration(60s), "About a minute");
  EXPECT_EQ(human_duration(119s), "About a minute");
  EXPECT_EQ(human_duration(120s), "2 minutes");
  EXPECT_EQ(human_duration(60min), "About an hour");
  EXPECT_EQ(human_duration(89min), "About an hour");
  EXPECT_EQ(human_duration(90min), "2 hours");
  EXPECT_EQ(human_duration(47h), "47 hours");
  EXPECT_EQ(human_duration(48h), "2 days");
  EXPECT_EQ(human_duration(24h * 14), "2 weeks");
  EXPECT_EQ(human_duration(24h * 60), "2 months");
  EXPECT_EQ(human_duration(24h * 365 * 2), "2 years");
}

TEST(HumanAgo, does_not_date_what_has_no_date) {
  std::chrono::system_clock::time_point now{1'000'000s};
  EXPECT_EQ(human_ago(now - 3min, now), "3 minutes ago");
  EXPECT_EQ(human_ago({}, now), "N/A");
  EXPECT_EQ(human_ago(now + 5s, now), "Less than a second ago");
}

TEST(ShortDuration, fits_beside_a_bar) {
  EXPECT_EQ(short_duration(-1s), "0s");
  EXPECT_EQ(short_duration(45s), "45s");
  EXPECT_EQ(short_duration(185s), "3m05s");
  EXPECT_EQ(short_duration(2h + 10min), "2h10m");
}

TEST(ShownId, is_twelve_digits_without_the_algorithm) {
  std::string id = "sha256:0123456789abcdef0123";
  EXPECT_EQ(shown_id(id, Ids::shortened), "0123456789ab");
  EXPECT_EQ(shown_id(id, Ids::whole), id);
  EXPECT_EQ(shown_id("abc", Ids::shortened), "abc");
}

}  // namespace
}  // namespace berth::cli
