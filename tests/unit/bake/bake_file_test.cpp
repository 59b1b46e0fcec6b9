// SPDX-License-Identifier: Apache-2.0
#include "bake/bake_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::bake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

BakeFile read(const std::string& text) {
  auto file = read_bake_file(text, "bake.toml");
  EXPECT_TRUE(file.ok()) << to_line(file.error());
  return file.ok() ? *file : BakeFile{};
}

std::string fault(const std::string& text) {
  auto file = read_bake_file(text, "bake.toml");
  EXPECT_FALSE(file.ok());
  return file.ok() ? "" : to_line(file.error());
}

std::vector<std::string> names(const BakeFile& file) {
  std::vector<std::string> out;
  for (const Cell& cell : file.cells) out.push_back(cell.name);
  return out;
}

const std::string kHead = "image = \"r.example/app:1\"\n";

TEST(BakeFile, a_matrix_is_every_combination_with_the_generic_one_first) {
  BakeFile file = read(kHead + R"([axes]
cpu = ["x86-64-v4", "x86-64", "x86-64-v3"]
cuda = ["12.8", "11.8"]
)");
  EXPECT_EQ(file.image, "r.example/app:1");
  EXPECT_THAT(names(file), ElementsAre("cu118-x86-64", "cu128-x86-64", "cu118-v3", "cu128-v3",
                                       "cu118-v4", "cu128-v4"));
}

TEST(BakeFile, a_cell_is_annotated_with_the_words_that_nodes_read) {
  BakeFile file = read(kHead + R"(priority = 3
[axes]
cpu = ["skylake-avx512"]
cc = ["9.0"]
gpu = ["compute_90@8.7"]
mpi = ["none"]
)");
  ASSERT_EQ(file.cells.size(), 1u);
  EXPECT_THAT(
      file.cells[0].annotations,
      UnorderedElementsAre(Pair("dev.berth.variant.name", "skylake-avx512-sm90-compute_90-8.7"),
                           Pair("dev.berth.variant.cpu", "skylake-avx512"),
                           Pair("dev.berth.variant.gpu", "sm_90 compute_90@8.7"),
                           Pair("dev.berth.variant.priority", "3")));
}

TEST(BakeFile, exclude_and_only_take_cells_away) {
  BakeFile file = read(kHead + R"(exclude = [{cuda = "11.8", cpu = "x86-64-v4"}]
only = [{cpu = "x86-64-v4"}, {cpu = "x86-64"}]
[axes]
cpu = ["x86-64", "x86-64-v3", "x86-64-v4"]
cuda = ["11.8", "12.8"]
)");
  EXPECT_THAT(names(file), ElementsAre("cu118-x86-64", "cu128-x86-64", "cu128-v4"));
}

TEST(BakeFile, words_in_braces_become_the_cells_values) {
  BakeFile file = read(R"(image = "app:{version}"
version = "2.9"
name = "{cpu}_nvcap{cc}"
adopt = "repo:{cpu}_nvcap{cc}_{version}"
[axes]
cpu = ["broadwell"]
cc = ["52"]
)");
  ASSERT_EQ(file.cells.size(), 1u);
  EXPECT_EQ(file.image, "app:2.9");
  EXPECT_EQ(file.cells[0].name, "broadwell_nvcap52");
  EXPECT_EQ(file.cells[0].adopt, "repo:broadwell_nvcap52_2.9");
}

TEST(BakeFile, cells_of_their_own_say_their_way) {
  BakeFile file = read(kHead + R"(file = "Containerfile.gpu"
[args]
BASE = "debian"
MARCH = "{cpu}"
[axes]
cpu = ["x86-64-v3", "x86-64-v4"]
[[cell]]
name = "plain"
adopt = "other:1"
[[cell]]
name = "arm"
platform = "linux/arm64"
cpu = "neoverse_v2"
args = {MARCH = "armv9-a"}
)");
  EXPECT_THAT(names(file), ElementsAre("plain", "v3", "v4", "arm"));
  EXPECT_EQ(file.cells[0].adopt, "other:1");
  EXPECT_EQ(file.cells[1].adopt, "");
  EXPECT_EQ(file.cells[1].args.at("MARCH"), "x86-64-v3");
  EXPECT_EQ(file.cells[3].args.at("MARCH"), "armv9-a");
  EXPECT_EQ(file.cells[3].args.at("BASE"), "debian");
  EXPECT_EQ(file.cells[3].platform, "linux/arm64");
  EXPECT_EQ(file.cells[3].file, "Containerfile.gpu");
}

TEST(BakeFile, without_a_matrix_there_is_one_cell) {
  EXPECT_THAT(names(read(kHead)), ElementsAre("generic"));
}

TEST(BakeFile, generic_names_the_first_entry) {
  BakeFile file = read(kHead + R"(generic = "v3"
[axes]
cpu = ["x86-64", "x86-64-v3"]
)");
  EXPECT_THAT(names(file), ElementsAre("v3", "x86-64"));
  EXPECT_THAT(fault(kHead + "generic = \"v5\"\n[axes]\ncpu = [\"x86-64\", \"x86-64-v3\"]\n"),
              HasSubstr("bake.toml:2: generic: no cell 'v5'; did you mean 'v3'?"));
}

TEST(BakeFile, typos_are_told_with_line_and_nearest_name) {
  EXPECT_THAT(fault(kHead + "[axes]\ncuda = [\"12.8\"]\ncpuu = [\"x86-64\"]\n"),
              HasSubstr("bake.toml:4: axes.cpuu: unknown axis 'cpuu'; did you mean 'cpu'?"));
  EXPECT_THAT(fault(kHead + "biulder = \"docker\"\n"),
              HasSubstr("bake.toml:2: biulder: unknown key; did you mean 'builder'?"));
  EXPECT_THAT(
      fault(kHead + "[axes]\ncpu = [\"x86-64\", \"skylake_avx51\"]\n"),
      HasSubstr("bake.toml:3: axes.cpu: 'skylake_avx51': not a processor that archspec knows; "
                "did you mean 'skylake_avx512'?"));
  EXPECT_THAT(fault(kHead + "[args]\nA = \"{cpuu}\"\n[axes]\ncpu = [\"x86-64\"]\n"),
              HasSubstr("bake.toml:3: args.A: '{cpuu}': unknown variable '{cpuu}'; did you "
                        "mean '{cpu}'?"));
  EXPECT_THAT(fault(kHead + "exclude = [{cuda = \"12.9\"}]\n[axes]\ncuda = [\"12.8\"]\n"),
              HasSubstr("bake.toml:2: exclude[0]: axis 'cuda' has no value '12.9'"));
  EXPECT_THAT(fault(kHead + "exclude = [{cudda = \"12.8\"}]\n[axes]\ncuda = [\"12.8\"]\n"),
              HasSubstr("did you mean 'cuda'?"));
  EXPECT_THAT(fault(kHead + "[[cell]]\nname = \"x\"\nadpot = \"y\"\n"),
              HasSubstr("cell[0].adpot: unknown key; did you mean 'adopt'?"));
}

TEST(BakeFile, a_misspelt_key_is_told_before_the_one_that_is_missing_for_it) {
  EXPECT_EQ(fault("imgae = 'x:1'\n"), "bake.toml:1: imgae: unknown key; did you mean 'image'?");
  EXPECT_EQ(fault("version = '1'\n"),
            "bake.toml: image: missing: the name of the index; try: image = "
            "\"registry.example.org/app:1.0\"");
}

TEST(BakeFile, keys_of_the_file_below_a_table_are_told_to_stand_before_it) {
  EXPECT_EQ(fault(kHead + "[axes]\ncuda = ['12.8']\nexclude = [{cuda = '12.8'}]\n"),
            "bake.toml:4: axes.exclude: 'exclude' is a key of the file, not of [axes]; try: "
            "exclude = … before the first [table]");
  EXPECT_THAT(fault(kHead + "[axes]\ncuda = ['12.8']\ncommand = ['make']\n"),
              HasSubstr("bake.toml:4: axes.command: 'command' is a key of the file"));
  EXPECT_THAT(fault(kHead + "[args]\nA = '1'\nonly = [{cuda = '12.8'}]\n"),
              HasSubstr("bake.toml:4: args.only: 'only' is a key of the file, not of [args]"));
  EXPECT_THAT(fault(kHead + "[[cell]]\nname = 'a'\nbuilder = 'docker'\n"),
              HasSubstr("cell[0].builder: 'builder' is a key of the file, not of [[cell]]"));
  EXPECT_EQ(read(kHead + "[args]\nversion = '2'\n").cells.at(0).args.at("version"), "2");
}

TEST(BakeFile, values_that_no_node_could_read_are_refused) {
  EXPECT_THAT(fault(kHead + "[axes]\ncuda = [\"twelve\"]\n"),
              HasSubstr("bake.toml:3: axes.cuda: 'twelve': not a value of axis 'cuda'"));
  EXPECT_THAT(fault(kHead + "[axes]\ncuda = [12.8]\n"),
              HasSubstr("bake.toml:3: axes['cuda'][0]: expected a string, got a number"));
  EXPECT_THAT(fault(kHead + "[axes]\ncuda = []\n"), HasSubstr("an axis without a value"));
  EXPECT_THAT(fault(kHead + "builder = \"make\"\n"), HasSubstr("expected 'buildah' or 'docker'"));
  EXPECT_THAT(fault("x = 1"), HasSubstr("bake.toml"));
  EXPECT_THAT(fault("image = "), HasSubstr("bake.toml:1"));
}

TEST(BakeFile, a_value_that_is_no_word_is_told_with_its_line_and_what_is_expected) {
  EXPECT_EQ(
      fault(kHead + "[axes]\ngpu = [\n  'sm_80',\n  'sm90',\n]\n"),
      "bake.toml:5: axes.gpu: 'sm90': not a value of axis 'gpu'; expected a value such as sm_90, "
      "compute_90, gfx942; try: docs/variants.md");
  EXPECT_EQ(fault(kHead + "[[cell]]\ncc = '90'\n\n[[cell]]\ncc = 'ninety'\n"),
            "bake.toml:5: cell[1].cc: 'ninety': not a value of axis 'cc'; expected a value such as "
            "90, 9.0, "
            "90a; try: docs/variants.md");
  EXPECT_THAT(fault(kHead + "[[cell]]\ncc = '90'\n[[cell]]\nadpot = 'x'\n"),
              HasSubstr("bake.toml:4: cell[1].adpot: unknown key"));
  EXPECT_THAT(fault(kHead + "[[cell]]\nargs = {X = '1'}\n[[cell]]\nargs = {X = 1}\n"),
              HasSubstr("bake.toml:4: cell[1].args['X']: expected a string"));
}

TEST(BakeFile, a_cell_that_lacks_an_axis_of_a_template_is_told_with_what_to_write) {
  const std::string text = kHead + "[args]\nCUDA = '{cuda}'\n[axes]\ncuda = ['12.8', '13']\n";
  EXPECT_EQ(fault(text + "[[cell]]\nname = 'plain'\n"),
            "bake.toml:3: args.CUDA: '{cuda}': cell 'plain' has no cuda; try: cuda = \"none\" in "
            "the cell, or args of its own");
  EXPECT_EQ(fault(kHead + "[args]\nA = '{cdua}'\n[[cell]]\nname = 'b'\ncuda = '13'\n"),
            "bake.toml:3: args.A: cell 'b': '{cdua}': unknown variable '{cdua}'; did you "
            "mean '{cuda}'?");
  BakeFile file = read(text + "[[cell]]\nname = 'plain'\ncuda = 'none'\n");
  EXPECT_EQ(file.cells.at(0).args.at("CUDA"), "none");
  file = read(text + "[[cell]]\nname = 'plain'\nargs = {CUDA = '-'}\n");
  EXPECT_EQ(file.cells.at(0).args.at("CUDA"), "-");
}

TEST(BakeFile, names_have_to_be_parts_of_tags_and_differ) {
  EXPECT_THAT(fault(kHead + "[[cell]]\nname = \"a b\"\n"), HasSubstr("part of a tag"));
  EXPECT_THAT(fault(kHead + "name = \"same\"\n[axes]\ncpu = [\"x86-64\", \"x86-64-v3\"]\n"),
              HasSubstr("two cells of the name 'same'"));
}

TEST(BakeFile, more_cells_than_an_index_has_are_refused) {
  std::string text = kHead + "[axes]\n";
  for (const char* axis : {"cuda", "driver", "kernel", "glibc"}) {
    text += std::string(axis) + " = [";
    for (int i = 1; i <= 20; ++i) text += "\"" + std::to_string(i) + ".0\",";
    text += "]\n";
  }
  EXPECT_THAT(fault(text), HasSubstr("combinations"));
  EXPECT_THAT(fault(kHead + "exclude = [{cpu = \"x86-64\"}]\n[axes]\ncpu = [\"x86-64\"]\n"),
              HasSubstr("excludes every cell"));
}

TEST(BakeFile, no_damage_of_a_good_file_ends_in_anything_but_an_error) {
  const std::string good = kHead + R"(version = "1"
exclude = [{cpu = "x86-64"}]
[args]
A = "{cpu}-{version}"
[axes]
cpu = ["x86-64", "x86-64-v3"]
[[cell]]
name = "n"
command = ["make", "{out}"]
)";
  for (size_t i = 0; i < good.size(); ++i) {
    ignore(read_bake_file(good.substr(0, i), "bake.toml"));
    for (char c : {'"', '{', '}', '[', ']', '=', '\0', '\xff', '.', '\n'}) {
      std::string bad = good;
      bad[i] = c;
      ignore(read_bake_file(bad, "bake.toml"));
    }
  }
}

TEST(BakeFile, a_cell_is_found_by_name) {
  BakeFile file = read(kHead + "[axes]\ncpu = [\"x86-64\", \"x86-64-v3\"]\n");
  EXPECT_TRUE(cell_named(file, "v3").ok());
  auto none = cell_named(file, "v33");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(to_line(none.error()), HasSubstr("no cell 'v33'; did you mean 'v3'?"));
}

// ---- rules of NFD

Result<std::string> rules_file(const std::string& path) {
  if (path != "nfd.yaml" && path != "v4.yaml") return make_error(Kind::not_found, "no " + path);
  std::string level = path == "v4.yaml" ? "X86_64_V4" : "X86_64_V2";
  return "version: v1alpha1\ncompatibilities: [{rules: [{matchFeatures: [{feature: cpu.cpuid, "
         "matchExpressions: {" +
         level +
         ": {op: Exists}, AVX512VNNI: {op: Exists}}}, {feature: "
         "kernel.config, matchExpressions: {NUMA: {op: IsTrue}}}]}]}]\n";
}

BakeFile read_with_rules(const std::string& text) {
  auto file = read_bake_file(text, "bake.toml", rules_file);
  EXPECT_TRUE(file.ok()) << to_line(file.error());
  return file.ok() ? *file : BakeFile{};
}

TEST(BakeFile, rules_of_nfd_are_axes_of_each_cell_and_what_it_says_itself_wins) {
  BakeFile file = read_with_rules(kHead + R"(nfd = "nfd.yaml"
[axes]
cpu = ["x86-64-v2", "x86-64-v4"]
)");
  ASSERT_EQ(file.cells.size(), 2u);
  for (const Cell& cell : file.cells) {
    EXPECT_EQ(cell.annotations.at("dev.berth.variant.cpu-features"), "avx512_vnni");
  }
  EXPECT_EQ(file.cells[1].annotations.at("dev.berth.variant.cpu"), "x86-64-v4");
  EXPECT_THAT(names(file), ElementsAre("v2", "v4"));
  EXPECT_THAT(file.remarks, ElementsAre(HasSubstr("kernel.config: NUMA IsTrue has no word here")));
}

TEST(BakeFile, a_cell_may_have_rules_of_its_own) {
  BakeFile file = read_with_rules(kHead + R"([[cell]]
name = "v4"
nfd = "{name}.yaml"
[[cell]]
name = "plain"
)");
  EXPECT_THAT(names(file), ElementsAre("plain", "v4"));
  EXPECT_EQ(file.cells[0].annotations.size(), 1u);
  EXPECT_EQ(file.cells[1].annotations.at("dev.berth.variant.cpu"), "x86-64-v4");
}

TEST(BakeFile, rules_that_ask_for_more_than_a_cell_says_contradict_it) {
  auto told = [](const std::string& text) {
    auto file = read_bake_file(kHead + text, "bake.toml", rules_file);
    EXPECT_FALSE(file.ok());
    return file.ok() ? "" : to_line(file.error());
  };
  EXPECT_EQ(told("[[cell]]\nname = \"a\"\ncpu = \"x86-64-v3\"\nnfd = \"v4.yaml\"\n"),
            "bake.toml:2: cell[0]: cpu 'x86-64-v3' requires less than 'v4.yaml' does: x86-64-v4");
  EXPECT_THAT(told("[[cell]]\nname = \"a\"\ncpu = \"none\"\nnfd = \"v4.yaml\"\n"),
              HasSubstr("cpu 'none' requires less"));
  EXPECT_THAT(told("nfd = \"no.yaml\"\n"), HasSubstr("bake.toml:2: nfd: no no.yaml"));
  EXPECT_THAT(told("nfd-tag = \"a\"\n"), HasSubstr("there is no nfd"));
  EXPECT_THAT(told("nfd = \"nfd.yaml\"\nnfd-tag = \"a\"\n"), HasSubstr("no tag 'a'"));
}

TEST(AsksAsMuch, of_each_axis) {
  EXPECT_TRUE(asks_as_much("cpu", "zen4", "x86-64-v4"));
  EXPECT_FALSE(asks_as_much("cpu", "zen2", "x86-64-v4"));
  EXPECT_TRUE(asks_as_much("cpu-features", "avx2 fma", "fma"));
  EXPECT_FALSE(asks_as_much("cpu-features", "fma", "avx2 fma"));
  EXPECT_TRUE(asks_as_much("kernel", ">=6.1 <7", ">=5.10"));
  EXPECT_TRUE(asks_as_much("kernel", "=5.10", ">=5.10 <6"));
  EXPECT_FALSE(asks_as_much("kernel", "=5", "<5.10"));
  EXPECT_FALSE(asks_as_much("kernel", "<7", ">=5.10"));
  EXPECT_TRUE(asks_as_much("driver", ">525", ">=525"));
  EXPECT_TRUE(asks_as_much("gpu", "sm_86", "sm_80 sm_90"));
  EXPECT_FALSE(asks_as_much("gpu", "sm_80", "sm_86"));
  EXPECT_FALSE(asks_as_much("gpu", "none", "sm_86"));
}

}  // namespace
}  // namespace berth::bake
