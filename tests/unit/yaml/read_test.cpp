// SPDX-License-Identifier: Apache-2.0
#include "yaml/read.hpp"

#include <gtest/gtest.h>

namespace berth::yaml {
namespace {

json::Value value_of(std::string_view text) {
  auto value = yaml::parse(text, "t.yaml");
  EXPECT_TRUE(value.ok()) << (value.ok() ? "" : to_line(value.error()));
  return value.ok() ? *value : json::Value();
}

std::string json_of(std::string_view text) {
  return json::dump(value_of(text));
}

std::string error_of(std::string_view text, const json::Limits& limits = kLimits) {
  auto value = yaml::parse(text, "t.yaml", limits);
  EXPECT_FALSE(value.ok());
  return value.ok() ? "" : to_line(value.error());
}

TEST(Yaml, gives_the_values_that_json_has) {
  EXPECT_EQ(json_of("---\na: 1\nb:\n- x\n- [y, {z: true}]\nc: {}\nd: ~\n"),
            R"({"a":1,"b":["x",["y",{"z":true}]],"c":{},"d":null})");
}

TEST(Yaml, takes_json_as_it_is) {
  EXPECT_EQ(json_of(R"({"a": [1, "2", null, false]})"), R"({"a":[1,"2",null,false]})");
}

TEST(Yaml, resolves_plain_scalars_as_the_core_schema_does) {
  EXPECT_EQ(json_of("[null, Null, ~, true, FALSE, yes, off, 12, -3, +4, 0x1F, 0o17]"),
            R"([null,null,null,true,false,"yes","off",12,-3,4,31,15])");
  EXPECT_EQ(json_of("[0.5.0, 1.5, 1a, 0x, 0xg, -, +, '', 0:1, GPU-1]"),
            R"(["0.5.0","1.5","1a","0x","0xg","-","+","","0:1","GPU-1"])");
}

TEST(Yaml, resolves_the_integers_of_go) {
  EXPECT_EQ(json_of("[0666, 0b101, 1_000, 08, 00]"), R"([438,5,1000,"08",0])");
}

TEST(Yaml, keeps_a_number_that_does_not_fit_as_text) {
  EXPECT_EQ(json_of("[18446744073709551615, 18446744073709551616, -9223372036854775808, "
                    "-9223372036854775809]"),
            "[18446744073709551615,\"18446744073709551616\",-9223372036854775808,"
            "\"-9223372036854775809\"]");
}

TEST(Yaml, takes_a_quoted_scalar_as_text) {
  EXPECT_EQ(json_of("['1', \"true\", \"~\", '']"), R"(["1","true","~",""])");
}

TEST(Yaml, reads_block_scalars) {
  EXPECT_EQ(json_of("a: |\n  x\n  y\nb: >-\n  x\n  y\n"), R"({"a":"x\ny\n","b":"x y"})");
}

TEST(Yaml, allows_the_tags_of_the_core_schema_and_holds_them_to_their_word) {
  EXPECT_EQ(json_of("[!!str 1, !!int '7', !!bool \"true\", ! 5, !!seq [], !!map {}]"),
            R"(["1",7,true,"5",[],{}])");
  EXPECT_EQ(error_of("!!int x"),
            "t.yaml: line 1, column 1: 'x' is not what tag 'tag:yaml.org,2002:int' says");
  EXPECT_EQ(error_of("a: !!binary eA=="),
            "t.yaml: line 1, column 4: 'eA==' is not what tag 'tag:yaml.org,2002:binary' says");
  EXPECT_EQ(error_of("!!map []"),
            "t.yaml: line 1, column 1: tag 'tag:yaml.org,2002:map' is not allowed");
  EXPECT_EQ(error_of("!go x"), "t.yaml: line 1, column 1: tag '!go' is not allowed");
  EXPECT_EQ(error_of("%TAG !e! tag:e.com:\n---\n!e!x y"),
            "t.yaml: line 1, column 1: %TAG is not allowed");
}

TEST(Yaml, refuses_anchors_aliases_and_merge_keys) {
  EXPECT_EQ(error_of("a: &x 1\n"), "t.yaml: line 1, column 4: anchors are not allowed");
  EXPECT_EQ(error_of("a: &x [1]\n"), "t.yaml: line 1, column 4: anchors are not allowed");
  EXPECT_EQ(error_of("a: *x\n"), "t.yaml: line 1, column 4: aliases are not allowed");
  EXPECT_EQ(error_of("<<: {a: 1}\n"), "t.yaml: line 1, column 1: merge keys are not allowed");
}

TEST(Yaml, refuses_duplicate_and_structured_keys) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"), "t.yaml: line 3, column 1: 'a' is given twice");
  EXPECT_EQ(error_of("? [a]\n: 1\n"), "t.yaml: line 1, column 3: a key has to be a scalar");
  EXPECT_EQ(error_of("!!str a: 1\n"), "t.yaml: line 1, column 1: a key has no tag");
}

TEST(Yaml, refuses_a_second_document_and_none) {
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "t.yaml: line 2, column 1: a second document");
  EXPECT_EQ(error_of(""), "t.yaml: no document in it");
  EXPECT_EQ(error_of("# nothing\n"), "t.yaml: no document in it");
}

TEST(Yaml, tells_where_a_text_is_no_yaml) {
  EXPECT_EQ(error_of("a: [1\nb: 2\n"),
            "t.yaml: line 2, column 2: did not find expected ',' or ']'");
  EXPECT_NE(error_of("a: \xff").find("t.yaml: line 1"), std::string::npos);
  EXPECT_FALSE(yaml::parse(std::string_view("a\0b: \x01", 7), "t.yaml").ok());
}

TEST(Yaml, stops_at_its_limits) {
  EXPECT_EQ(error_of("[[[1]]]", {.max_bytes = 100, .max_depth = 2, .max_values = 100}),
            "t.yaml: line 1, column 3: nested too deeply");
  EXPECT_EQ(error_of("[1, 2, 3]", {.max_bytes = 100, .max_depth = 2, .max_values = 3}),
            "t.yaml: line 1, column 8: too many values");
  EXPECT_EQ(error_of("[1, 2, 3]", {.max_bytes = 8, .max_depth = 2, .max_values = 3}),
            "t.yaml: larger than 8B");
  EXPECT_FALSE(yaml::parse(std::string(100000, '['), "t.yaml").ok());
  EXPECT_FALSE(yaml::parse(std::string(100000, '-'), "t.yaml").ok() &&
               value_of(std::string(100000, '-')).array() != nullptr);
}

TEST(Yaml, writes_what_it_reads_back) {
  std::string text =
      R"({"cdiVersion":"0.5.0","list":[{"a":1,"b":[]},["x",["y"]],"- z: #",{}],)"
      R"("on":"no","k-1":{"d":null,"e":-5,"f":true},"g":"\u0001\n\"é \u007f\u0085\u009f\u00a0\u2028\ufeff\uffff"})";
  json::Value value = *json::parse(text, "t.json");
  std::string written = yaml::dump(value);
  EXPECT_EQ(json::dump(value_of(written)), json::dump(value)) << written;
  EXPECT_EQ(yaml::dump(json::Object{{"a", json::Array{json::Object{{"b", "1"}, {"c", 2}}}}}),
            "a:\n  - b: \"1\"\n    c: 2\n");
}

}  // namespace
}  // namespace berth::yaml
