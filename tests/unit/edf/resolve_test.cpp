// SPDX-License-Identifier: Apache-2.0
#include "edf/resolve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::edf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Files = std::map<std::string, std::string>;

Result<Definition> resolved(const Files& files, const std::string& name) {
  auto load = [&](const std::string& one) -> Result<File> {
    auto found = files.find(one);
    if (found == files.end()) return make_error(Kind::not_found, "no '" + one + ".toml'");
    return File{one + ".toml", found->second};
  };
  auto look_up = [](std::string_view variable) -> std::optional<std::string_view> {
    if (variable == "USER") return "anna";
    return std::nullopt;
  };
  File first = TRY(load(name));
  return resolve(first, load, look_up);
}

std::string fault(const Files& files, const std::string& name = "a") {
  auto out = resolved(files, name);
  return out.ok() ? "" : to_line(out.error());
}

std::vector<std::string> texts(const std::vector<Text>& from) {
  std::vector<std::string> out;
  for (const Text& text : from) out.push_back(text.text);
  return out;
}

TEST(Resolve, lays_a_file_over_its_bases_in_their_order) {
  auto out = resolved({{"low",
                        "image = 'low'\nworkdir = '/low'\nwritable = false\n"
                        "mounts = ['/l:/l']\ndevices = ['v.com/d=0']\n"
                        "[env]\nA = 'low'\nB = 'low'\n[annotations]\nx = 'low'\ny = 'low'\n"},
                       {"high", "image = 'high'\nmounts = ['/h:/h']\n[env]\nB = 'high'\n"},
                       {"a",
                        "base_environment = ['low', 'high']\nentrypoint = true\n"
                        "mounts = ['/a:/a']\n[env]\nA = ''\n[annotations]\ny = 'a'\n"}},
                      "a");
  ASSERT_TRUE(out.ok()) << to_line(out.error());
  EXPECT_EQ(out->image, (Text{"high", "high.toml:1"}));
  EXPECT_EQ(out->workdir, (Text{"/low", "low.toml:2"}));
  EXPECT_EQ(out->writable, false);
  EXPECT_EQ(out->entrypoint, true);
  EXPECT_THAT(texts(out->mounts), ElementsAre("/l:/l", "/h:/h", "/a:/a"));
  EXPECT_THAT(texts(out->devices), ElementsAre("v.com/d=0"));
  EXPECT_EQ(out->variables.at("A"), (Text{"", "a.toml:5"}));
  EXPECT_EQ(out->variables.at("B"), (Text{"high", "high.toml:4"}));
  EXPECT_EQ(out->annotations.at("x").text, "low");
  EXPECT_EQ(out->annotations.at("y").text, "a");
  EXPECT_TRUE(out->bases.empty());
}

TEST(Resolve, expands_all_but_the_variables_of_the_container) {
  auto out = resolved({{"of-anna",
                        "image = '/images/${USER}.sqsh'\nworkdir = '/home/${USER}'\n"
                        "mounts = ['/s/${USER}:/s']\ndevices = ['v.com/d=${USER}']\n"
                        "[annotations]\nkey = '${USER}'\n"},
                       {"a", "base_environment = 'of-${USER}'\n[env]\nPATH = '${PATH}:/x'\n"}},
                      "a");
  ASSERT_TRUE(out.ok()) << to_line(out.error());
  EXPECT_EQ(out->image->text, "/images/anna.sqsh");
  EXPECT_EQ(out->workdir->text, "/home/anna");
  EXPECT_THAT(texts(out->mounts), ElementsAre("/s/anna:/s"));
  EXPECT_THAT(texts(out->devices), ElementsAre("v.com/d=anna"));
  EXPECT_EQ(out->annotations.at("key").text, "anna");
  EXPECT_EQ(out->variables.at("PATH").text, "${PATH}:/x");
}

TEST(Resolve, names_the_files_of_a_loop) {
  EXPECT_EQ(fault({{"a", "\nbase_environment = 'a'\n"}}),
            "a.toml:2: base_environment is a loop: a.toml -> a.toml");
  EXPECT_EQ(fault({{"a", "base_environment = 'b'\n"},
                   {"b", "image = 'x'\nbase_environment = ['d', 'c']\n"},
                   {"c", "base_environment = 'b'\n"},
                   {"d", ""}}),
            "c.toml:1: base_environment is a loop: b.toml -> c.toml -> b.toml");
}

TEST(Resolve, takes_one_base_twice_where_it_is_no_loop) {
  EXPECT_EQ(fault({{"a", "base_environment = ['b', 'c']\n"},
                   {"b", "base_environment = 'd'\n"},
                   {"c", "base_environment = 'd'\n"},
                   {"d", ""}}),
            "");
}

TEST(Resolve, goes_ten_levels_deep) {
  Files files{{"10", ""}};
  for (int i = 0; i < 10; ++i) {
    files[std::to_string(i)] = "base_environment = '" + std::to_string(i + 1) + "'\n";
  }
  EXPECT_EQ(fault(files, "0"), "");
  files["10"] = "base_environment = '11'\n";
  files["11"] = "";
  EXPECT_THAT(fault(files, "0"),
              HasSubstr("10.toml:1: base_environment has more than 10 levels: 0.toml -> 1.toml"));
}

TEST(Resolve, reads_no_more_than_a_hundred_files) {
  Files files{{"a", "base_environment = ["}, {"b", "base_environment = ["}, {"c", ""}};
  for (int i = 0; i < 20; ++i) {
    files["a"] += "'b',";
    files["b"] += "'c',";
  }
  files["a"] += "]\n";
  files["b"] += "]\n";
  EXPECT_THAT(fault(files), HasSubstr("more than 100 files by base_environment"));
}

TEST(Resolve, tells_where_it_failed) {
  EXPECT_EQ(fault({{"a", "image = 'x'\nbase_environment = 'b'\n"}}), "a.toml:2: no 'b.toml'");
  EXPECT_EQ(fault({{"a", "base_environment = 'b'\n"}, {"b", "imag = 'x'\n"}}),
            "b.toml:1: imag: unknown key; did you mean 'image'?");
  EXPECT_EQ(fault({{"a", "mounts = [\n'/a:/a',\n'${NONE}:/b']\n"}}),
            "a.toml:3: the variable 'NONE' is not set; try: ${NONE:-} where it may be missing");
  EXPECT_THAT(fault({{"a", "[env]\nA = '${NONE}'\nB = '$A'\n"}}),
              HasSubstr("a.toml:3: cannot read the variable in '$A'"));
}

}  // namespace
}  // namespace berth::edf
