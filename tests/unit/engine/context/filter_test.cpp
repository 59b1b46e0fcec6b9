// SPDX-License-Identifier: Apache-2.0
#include "engine/context/filter.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

using namespace berth;
using namespace berth::engine;

namespace {

Filters filters(std::initializer_list<const char*> texts) {
  std::vector<Filter> list;
  for (const char* text : texts) list.push_back(*parse_filter(text));
  return Filters(std::move(list));
}

TEST(Filter, is_a_key_and_a_value) {
  auto filter = parse_filter(" Label = a=b ");
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(filter->key, "label");
  EXPECT_EQ(filter->value, "a=b");
  EXPECT_EQ(to_line(parse_filter("name").error()), "expected KEY=VALUE");
  EXPECT_FALSE(parse_filter("=x").ok());
  EXPECT_TRUE(parse_filter("name=").ok());
}

TEST(Filter, one_of_a_key_and_all_keys_have_to_fit) {
  Filters some = filters({"name=a", "name=b"});
  auto is = [](const char* wanted) {
    return [wanted](const std::string& value) { return value == wanted; };
  };
  EXPECT_TRUE(some.fits("name", is("b")));
  EXPECT_FALSE(some.fits("name", is("c")));
  EXPECT_TRUE(some.fits("id", is("c")));
}

TEST(Filter, all_labels_have_to_fit) {
  std::map<std::string, std::string> labels{{"a", "1"}, {"b", ""}};
  EXPECT_TRUE(filters({}).fits_labels(labels));
  EXPECT_TRUE(filters({"label=a", "label=b="}).fits_labels(labels));
  EXPECT_TRUE(filters({"label=a=1"}).fits_labels(labels));
  EXPECT_FALSE(filters({"label=a=2"}).fits_labels(labels));
  EXPECT_FALSE(filters({"label=a", "label=c"}).fits_labels(labels));
}

TEST(Filter, an_unknown_key_or_value_names_the_nearest) {
  EXPECT_EQ(to_line(filters({"nmae=x"}).check_keys({"name", "id"}).error()),
            "invalid filter 'nmae', did you mean 'name'?");
  EXPECT_EQ(to_line(filters({"xyzzy=x"}).check_keys({"name", "id"}).error()),
            "invalid filter 'xyzzy'; there are: name, id");
  EXPECT_EQ(to_line(filters({"status=runing"}).check_values("status", {"running"}).error()),
            "invalid filter 'status=runing', did you mean 'running'?");
  EXPECT_TRUE(filters({"name=x"}).check_keys({"name"}).ok());
}

TEST(Filter, flags_are_true_or_false) {
  EXPECT_EQ(*filters({}).flag("dangling"), std::nullopt);
  EXPECT_EQ(*filters({"dangling=1"}).flag("dangling"), true);
  EXPECT_EQ(*filters({"dangling=false"}).flag("dangling"), false);
  EXPECT_FALSE(filters({"dangling=maybe"}).flag("dangling").ok());
}

TEST(Pattern, matches_anywhere_unless_anchored) {
  EXPECT_TRUE(Pattern::parse("eb")->matches("web-1"));
  EXPECT_TRUE(Pattern::parse("^web-\\d+$")->matches("web-12"));
  EXPECT_FALSE(Pattern::parse("^web-\\d+$")->matches("web-x"));
  EXPECT_TRUE(Pattern::parse("a|b")->matches("b"));
  EXPECT_TRUE(Pattern::parse("a.b")->matches("a.b"));
  EXPECT_FALSE(Pattern::parse("a\\.b")->matches("axb"));
}

TEST(Pattern, refuses_what_is_no_expression) {
  auto wrong = Pattern::parse("web[");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, Kind::usage);
  EXPECT_TRUE(wrong.error().what.starts_with("bad regular expression 'web[': "));
}

}  // namespace
