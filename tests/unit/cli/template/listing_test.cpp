// SPDX-License-Identifier: Apache-2.0
#include "cli/template/listing.hpp"

#include <gtest/gtest.h>

#include "cli/template/go_text.hpp"

using namespace berth;
using namespace berth::cli;

namespace {

constexpr ListField kFields[] = {{"ID", "BOAT ID"}, {"Names", "NAMES"}, {"Size", "SIZE"}};
constexpr ListKind kBoats{.fields = kFields,
                          .table = "{{.ID}}\t{{.Names}}",
                          .raw = "boat_id: {{.ID}}\n",
                          .raw_quiet = "boat_id: {{.ID}}",
                          .labels = true};

const std::vector<ListRow>& boats() {
  static const std::vector<ListRow> rows = {
      {{"b1", "a name of 20 letters", "1kB"}, {{"com.x.home-port", "Kiel"}, {"k", ""}}},
      {{"b2", "tab\tand\x1b[2J", "2kB"}, {}}};
  return rows;
}

std::string listed(const std::string& format, bool quiet = false) {
  auto listing = Listing::make(kBoats, {format, quiet});
  if (!listing.ok()) return "error: " + to_line(listing.error());
  auto text = listing->text(boats());
  return text.ok() ? *text : "error: " + to_line(text.error());
}

TEST(Listing, is_a_table_where_nothing_is_said) {
  const char* expected =
      "BOAT ID   NAMES\n"
      "b1        a name of 20 letters\n"
      "b2        tab\\tand\\x1b[2J\n";
  EXPECT_EQ(listed(""), expected);
  EXPECT_EQ(listed("table"), expected);
}

TEST(Listing, json_is_one_object_a_line_with_all_fields) {
  EXPECT_EQ(listed("json"),
            "{\"ID\":\"b1\",\"Names\":\"a name of 20 letters\",\"Size\":\"1kB\"}\n"
            "{\"ID\":\"b2\",\"Names\":\"tab\\tand\\u001b[2J\",\"Size\":\"2kB\"}\n");
  EXPECT_EQ(listed("{{json .}}"), listed("json"));
}

TEST(Listing, a_table_of_own_columns_has_the_titles_of_its_fields) {
  EXPECT_EQ(listed("table {{.Names}}\\t{{upper .ID}}"),
            "NAMES                  BOAT ID\n"
            "a name of 20 letters   B1\n"
            "tab\\tand\\x1b[2J        B2\n");
  EXPECT_EQ(listed("table {{.ID}}\\t{{.Label \"com.x.home-port\"}}\\t{{.Size}}"),
            "BOAT ID   home port   SIZE\n"
            "b1        Kiel        1kB\n"
            "b2                    2kB\n");
}

TEST(Listing, a_template_gives_one_line_a_row_with_its_escapes) {
  EXPECT_EQ(listed("{{.ID}}\\t{{.Size}}\\n-"), "b1\t1kB\n-\nb2\t2kB\n-\n");
  EXPECT_EQ(listed(" {{.ID}} "), "b1\nb2\n");
  EXPECT_EQ(listed("raw"), "boat_id: b1\n\nboat_id: b2\n\n");
}

TEST(Listing, quiet_gives_ids_but_a_template_is_stronger) {
  EXPECT_EQ(listed("", true), "b1\nb2\n");
  EXPECT_EQ(listed("table", true), "b1\nb2\n");
  EXPECT_EQ(listed("{{.Size}}", true), "1kB\n2kB\n");
  EXPECT_EQ(listed("raw", true), "boat_id: b1\nboat_id: b2\n");
}

TEST(Listing, a_word_is_no_format) {
  EXPECT_EQ(listed("xml"),
            "error: 'xml' is not a format: expected table, json or a template such as '{{.Name}}'");
  EXPECT_EQ(
      listed("table x"),
      "error: 'table x' is not a format: expected table, json or a template such as '{{.Name}}'");
}

TEST(Listing, an_unknown_field_is_refused_before_anything_is_listed) {
  auto listing = Listing::make(kBoats, {"{{.Nmaes}}", false});
  ASSERT_FALSE(listing.ok());
  EXPECT_EQ(to_line(listing.error()),
            "template, column 3: unknown field 'Nmaes', did you mean 'Names'?");
  EXPECT_EQ(listing.error().kind, Kind::usage);
}

TEST(Listing, knows_what_is_asked_for_by_name) {
  EXPECT_TRUE(Listing::make(kBoats, {"{{.Size}}", false})->uses("Size"));
  EXPECT_TRUE(Listing::make(kBoats, {"json", false})->uses("Size"));
  EXPECT_TRUE(Listing::make(kBoats, {"{{json .}}", false})->uses("Size"));
  EXPECT_TRUE(Listing::make(kBoats, {"{{with .ID}}{{$}}{{end}}", false})->uses("Size"));
  EXPECT_FALSE(Listing::make(kBoats, {"{{with .ID}}{{.}}{{end}}", false})->uses("Size"));
  EXPECT_FALSE(Listing::make(kBoats, {"", false})->uses("Size"));
}

TEST(Listing, labels_stand_in_one_field) {
  EXPECT_EQ(labels_text(boats()[0].labels), "com.x.home-port=Kiel,k=");
  EXPECT_EQ(labels_text({}), "");
}

TEST(AlignTabs, columns_are_three_blanks_apart_and_ten_wide_at_least) {
  EXPECT_EQ(align_tabs("a\tb\tc\nlonger than ten\tb\tc\n"),
            "a                 b         c\n"
            "longer than ten   b         c\n");
  EXPECT_EQ(align_tabs(""), "");
  EXPECT_EQ(align_tabs("a\t\n"), "a         \n");
}

TEST(AlignTabs, lines_without_a_cell_divide_columns) {
  EXPECT_EQ(align_tabs("abcdefghijkl\tx\nnone\na\tx\n"), "abcdefghijkl   x\nnone\na         x\n");
}

TEST(AlignTabs, counts_what_a_terminal_shows) {
  EXPECT_EQ(align_tabs("größeeeee\tx\nabcdefghi\tx\n"), "größeeeee   x\nabcdefghi   x\n");
}

}  // namespace
