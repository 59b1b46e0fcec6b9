// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edf/resolve.hpp"

namespace berth::edf {
namespace {

using testing::HasSubstr;

std::optional<std::string_view> value_of(std::string_view name) {
  if (name == "USER") return "anna";
  if (name == "PRICE") return "5$$ ${USER}";
  if (name == "EMPTY") return "";
  return std::nullopt;
}

std::string expanded(std::string_view text) {
  auto out = expand(text, value_of);
  return out.ok() ? *out : "error: " + to_line(out.error());
}

TEST(Expand, puts_values_in_the_place_of_names) {
  EXPECT_EQ(expanded("/scratch/${USER}:/scratch/${USER}"), "/scratch/anna:/scratch/anna");
  EXPECT_EQ(expanded("no variable"), "no variable");
  EXPECT_EQ(expanded(""), "");
  EXPECT_EQ(expanded("x${EMPTY}y"), "xy");
}

TEST(Expand, takes_the_default_where_nothing_is_set) {
  EXPECT_EQ(expanded("${NONE:-}"), "");
  EXPECT_EQ(expanded("${NONE:-/tmp}/x"), "/tmp/x");
  EXPECT_EQ(expanded("${EMPTY:-/tmp}"), "/tmp");
  EXPECT_EQ(expanded("${USER:-nobody}"), "anna");
  EXPECT_EQ(expanded("${NONE:-a:-b}"), "a:-b");
}

TEST(Expand, leaves_what_is_written_with_two_dollars) {
  EXPECT_EQ(expanded("$${USER}"), "${USER}");
  EXPECT_EQ(expanded("$$$${USER}"), "$${USER}");
  EXPECT_EQ(expanded("$$${USER}"), "$anna");
}

TEST(Expand, leaves_values_and_other_dollars_alone) {
  EXPECT_EQ(expanded("${PRICE}"), "5$$ ${USER}");
  EXPECT_EQ(expanded("5$ $1 $(id) $"), "5$ $1 $(id) $");
  EXPECT_EQ(expanded("`id`"), "`id`");
}

TEST(Expand, names_a_variable_that_is_not_set) {
  EXPECT_EQ(expanded("/a/${SCRATCH}"),
            "error: the variable 'SCRATCH' is not set; try: ${SCRATCH:-} where it may be missing");
}

TEST(Expand, refuses_forms_that_it_would_misread) {
  for (const char* text : {"$USER", "a$_b", "${USER", "${}", "${1}", "${A B}", "${USER:1}",
                           "${A-b}", "${A:=b}", "${A:-${USER}}", "${a.b}"}) {
    EXPECT_THAT(expanded(text), HasSubstr("cannot read the variable in ")) << text;
  }
  EXPECT_THAT(expanded(std::string_view("a\0b", 3)), HasSubstr("has a NUL in it"));
}

TEST(Expand, bounds_what_comes_of_it) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += "${USER}";
  EXPECT_THAT(expanded(text), HasSubstr("is longer than 128 KiB"));
  EXPECT_EQ(expanded(std::string(128 << 10, 'x')).size(), size_t{128} << 10);
}

}  // namespace
}  // namespace berth::edf
