// SPDX-License-Identifier: Apache-2.0
#include "bake/containerfile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::bake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> bases(const std::string& text,
                               const std::map<std::string, std::string>& args = {}) {
  auto found = base_images(text, args);
  EXPECT_TRUE(found.ok()) << to_line(found.error());
  std::vector<std::string> names;
  if (!found.ok()) return names;
  for (const BaseImage& base : *found) {
    // One that is spelled in two ways comes twice.
    if (names.empty() || names.back() != base.name) names.push_back(base.name);
  }
  return names;
}

TEST(Containerfile, names_what_it_is_built_on) {
  EXPECT_THAT(bases("FROM debian:12\nRUN true\n"), ElementsAre("debian:12"));
  EXPECT_THAT(bases("from --platform=linux/amd64 debian:12 as one\nFROM one\n"),
              ElementsAre("debian:12"));
  EXPECT_THAT(bases("FROM scratch\n"), IsEmpty());
}

TEST(Containerfile, arguments_before_the_first_from_count) {
  const std::string text = "ARG V=12\nARG NAME=debian\nFROM ${NAME}:$V\nARG V=13\nFROM $NAME:$V\n";
  EXPECT_THAT(bases(text), ElementsAre("debian:12"));
  EXPECT_THAT(bases(text, {{"V", "11"}}), ElementsAre("debian:11"));
  EXPECT_THAT(bases("ARG A\nFROM x:${A:-1}${A:+-set}\n"), ElementsAre("x:1"));
  EXPECT_THAT(bases("ARG A\nFROM x:${A:-1}${A:+-set}\n", {{"A", "2"}}), ElementsAre("x:2-set"));
}

TEST(Containerfile, an_image_keeps_how_it_is_spelled) {
  auto found = base_images("ARG V=12\nFROM debian:$V\n", {});
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre(BaseImage{"debian:12", "debian:$V"}));
}

std::string named(const std::string& text, const std::map<std::string, std::string>& args) {
  auto made = with_values_in_names(text, args);
  EXPECT_TRUE(made.ok()) << to_line(made.error());
  return made.ok() ? *made : "";
}

TEST(Containerfile, values_of_arguments_become_names) {
  const std::string text = "ARG V=1\nFROM x\nCOPY a /a\nARG M=none \\\n  V\nENV M=$M\n";
  std::string a = named(text, {{"M", "a"}});
  EXPECT_THAT(a, testing::MatchesRegex("ARG V=1\nFROM x\nCOPY a /a\nARG M=none [\\]\n  V\n"
                                       "ARG BERTH_ARGS_[0-9a-f]{16}=1\nENV M=[$]M\n"));
  EXPECT_EQ(a, named(text, {{"M", "a"}, {"OTHER", "x"}}));
  EXPECT_NE(a, named(text, {{"M", "b"}}));
  EXPECT_NE(a, named(text, {{"M", "a"}, {"V", "2"}})) << "of an argument before the first FROM";
  EXPECT_NE(a, named("ARG V=2" + text.substr(7), {{"M", "a"}}).replace(6, 1, "1"));
  // What no ARG comes before is shared by all cells.
  EXPECT_EQ(a.substr(0, a.find("ARG M")), text.substr(0, text.find("ARG M")));
  EXPECT_EQ(named("FROM x\nRUN true", {}), "FROM x\nRUN true");
  EXPECT_THAT(named("FROM x\nARG A", {}), testing::StartsWith("FROM x\nARG A\nARG BERTH_ARGS_"));
}

TEST(Containerfile, what_is_copied_from_is_a_base_too) {
  EXPECT_THAT(
      bases("FROM a AS build\nFROM b\nCOPY --from=build /x /x\nCOPY --chown=1 --from=c /y /\n"
            "COPY --from=0 /z /\nRUN --mount=type=bind,from=d,target=/d true\n"),
      ElementsAre("a", "b", "c", "d"));
}

TEST(Containerfile, lines_go_on_and_comments_do_not_count) {
  EXPECT_THAT(bases("# FROM no\nFROM \\\n  # in between\n  debian:12\nRUN echo \\\n FROM x\n"),
              ElementsAre("debian:12"));
  EXPECT_THAT(bases("# escape=`\nFROM `\n debian:12\n"), ElementsAre("debian:12"));
  EXPECT_THAT(bases("FROM debian:12\r\nRUN true\r\n"), ElementsAre("debian:12"));
}

TEST(Containerfile, one_that_is_built_on_nothing_is_refused) {
  auto none = base_images("RUN true\n", {});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(to_line(none.error()), HasSubstr("no FROM"));
  auto empty = base_images("ARG BASE\nFROM $BASE\n", {});
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(to_line(empty.error()), HasSubstr("FROM $BASE names no image"));
}

TEST(Containerfile, damage_is_an_error_at_most) {
  const std::string good = "ARG A=1\nFROM ${A:-x}$A \\\n AS b\nCOPY --from=b \"/x\" /y\n";
  for (size_t i = 0; i < good.size(); ++i) {
    ignore(base_images(good.substr(0, i), {}));
    for (char c : {'$', '{', '}', '\\', '\n', '=', '\0', '-'}) {
      std::string bad = good;
      bad[i] = c;
      ignore(base_images(bad, {}));
    }
  }
}

}  // namespace
}  // namespace berth::bake
