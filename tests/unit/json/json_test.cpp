// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "json/fields.hpp"

namespace berth::json {
namespace {

struct Mount {
  std::string destination;
  std::optional<std::string> source;
  std::vector<std::string> options;
  Rest rest;
};
template <class V>
void fields(V& v, Mount& m) {
  v.required("destination", m.destination);
  v.optional("source", m.source);
  v.optional("options", m.options);
  v.rest(m.rest);
}

struct Document {
  std::vector<Mount> mounts;
  std::map<std::string, std::string> annotations;
  int32_t score = 0;
  std::optional<uint32_t> uid;
  std::optional<Digest> digest;
};
template <class V>
void fields(V& v, Document& d) {
  v.optional("mounts", d.mounts);
  v.optional("annotations", d.annotations);
  v.optional("score", d.score);
  v.optional("uid", d.uid);
  v.optional("digest", d.digest);
}

struct Settings {
  std::string root;
};
template <class V>
void fields(V& v, Settings& s) {
  v.optional("root", s.root);
  v.strict();
}

std::string failure(std::string_view text) {
  auto result = read<Document>(text, "config.json");
  return result.ok() ? "no error" : to_line(result.error());
}

TEST(JsonParse, keeps_64_bits_of_an_integer) {
  auto value = parse("[9223372036854775807, 18446744073709551615, -1]", "d");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(dump(*value), "[9223372036854775807,18446744073709551615,-1]");
}

// Found by the fuzzer: RapidJSON reads outside of its table of powers.
TEST(JsonParse, takes_numbers_of_any_length) {
  for (size_t zeros : {1U, 348U, 349U, 5000U}) {
    std::string text = "0." + std::string(zeros, '0');
    auto value = parse("[" + text + ",-" + text + "1," + text + "e-9]", "d");
    ASSERT_TRUE(value.ok()) << zeros;
    EXPECT_EQ(*(*value->array())[0].get_if<double>(), 0.0) << zeros;
  }
  EXPECT_EQ(dump(*parse("[1e-400,-0,2.5e-1,18446744073709551616]", "d")),
            "[0,0,0.25,1.8446744073709552e+19]");
}

TEST(JsonParse, names_line_and_column_of_a_mistake) {
  EXPECT_EQ(to_line(parse("{\n  \"a\": x}", "d.json").error()),
            "d.json: line 2, column 8: invalid JSON");
}

TEST(JsonParse, refuses_depth_size_and_count_beyond_the_limits) {
  EXPECT_EQ(to_line(parse(std::string(100000, '['), "d").error()), "d: nested too deeply");
  EXPECT_EQ(to_line(parse("[1,2,3]", "d", {.max_values = 2}).error()),
            "d: more values than the limit allows");
  EXPECT_EQ(to_line(parse("[1,2,3]", "d", {.max_bytes = 3}).error()),
            "d: 7 bytes, more than the limit of 3");
}

TEST(JsonParse, refuses_what_is_no_document) {
  using std::string_literals::operator""s;
  for (const std::string& text :
       {""s, " "s, "{} {}"s, "{}\0{}"s, "[1,]"s, "{\"a\" 1}"s, "[01]"s, "[+1]"s, "[NaN]"s,
        "[1e999]"s, "\"a\nb\""s, "\"\\ud800\""s, "// no\n{}"s, "{'a': 1}"s, "\xef\xbb\xbf{}"s}) {
    EXPECT_FALSE(parse(text, "d").ok()) << text;
  }
  EXPECT_EQ(dump(*parse(" [ 0.1 , -0.0, 1e2, \"\\u00e9\\u0000\" ] \n", "d")),
            "[0.10000000000000001,-0,100,\"\xc3\xa9\\u0000\"]");
}

TEST(JsonParse, keeps_the_last_of_a_repeated_name) {
  EXPECT_EQ(dump(*parse(R"({"a":1,"b":2,"a":3})", "d")), R"({"a":3,"b":2})");
}

TEST(JsonParse, refuses_a_repeated_name_where_told_to) {
  json::Limits strict{.unique_names = true};
  EXPECT_EQ(to_line(parse(R"({"z":[{"a":1,"b":2,"a":1}]})", "d", strict).error()),
            "d: 'a' is given twice");
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"" + std::to_string(i) + "\":0,";
  EXPECT_EQ(to_line(parse(many + R"("7":0})", "d", strict).error()), "d: '7' is given twice");
  EXPECT_TRUE(parse(many + R"("a":{"7":0}})", "d", strict).ok());
}

TEST(JsonParse, refuses_invalid_utf8) {
  EXPECT_FALSE(parse("\"\xff\"", "d").ok());
}

TEST(JsonParse, refuses_control_characters_wherever_they_stand) {
  for (char control = 0; control < 0x20; ++control) {
    for (size_t before = 0; before < 40; ++before) {
      std::string text = "\"" + std::string(before, 'a') + control + "bbbbbbbbbbbbbbbbbb\"";
      EXPECT_FALSE(parse(text, "d").ok()) << int{control} << " after " << before;
    }
  }
  EXPECT_TRUE(parse("\t[\r\n1 ,\t2]\n", "d").ok());
  EXPECT_FALSE(parse(std::string_view("[1]\0", 4), "d").ok());
}

TEST(JsonParse, keeps_letters_of_every_length_and_alignment) {
  for (size_t length = 0; length < 70; ++length) {
    std::string plain(length, 'x');
    for (const std::string& text : {plain, plain + "\xC3\xA9" + plain, plain + "\"\\\n" + plain}) {
      Value value(Array{Value(text), Value("end")});
      auto parsed = parse(dump(value), "d");
      ASSERT_TRUE(parsed.ok()) << length;
      EXPECT_EQ(*parsed, value);
    }
  }
}

TEST(JsonDump, escapes_controls_and_replaces_invalid_utf8) {
  EXPECT_EQ(dump(Value("a\n\x1b\"\\\xff\xc3\xa9\f")), R"("a\n\u001b\"\\)"
                                                      "\xEF\xBF\xBD\xc3\xa9"
                                                      R"(\f")");
}

TEST(JsonDump, indents_when_asked) {
  Value value;
  value.set("a", Array{1, 2});
  EXPECT_EQ(dump(value, 2), "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n");
}

TEST(JsonFields, round_trips_with_unknown_members) {
  std::string text =
      R"({"mounts":[{"destination":"/proc","source":"proc","future":{"x":1}}],"score":-3,"uid":0})";
  auto document = read<Document>(text, "config.json");
  ASSERT_TRUE(document.ok()) << to_line(document.error());
  EXPECT_EQ(write(*document), text);
}

TEST(JsonFields, names_the_place_of_an_error) {
  EXPECT_EQ(failure(R"({"mounts":[{"destination":"/a"},{"destination":7}]})"),
            "config.json: mounts[1].destination: expected a string, got a number");
  EXPECT_EQ(failure(R"({"mounts":[{}]})"), "config.json: mounts[0].destination: missing");
  EXPECT_EQ(failure(R"({"annotations":{"k":1}})"),
            "config.json: annotations['k']: expected a string, got a number");
  EXPECT_EQ(failure(R"({"score":4294967296})"), "config.json: score: 4294967296 is out of range");
  EXPECT_EQ(failure(R"({"uid":-1})"), "config.json: uid: -1 is out of range");
  EXPECT_EQ(failure("[]"), "config.json: expected an object, got an array");
  EXPECT_EQ(failure(R"({"digest":"sha256:../x"})"),
            "config.json: digest: read digest 'sha256:../x': expected 'sha256:' and 64 hexadecimal "
            "digits");
}

TEST(JsonFields, strict_tables_suggest_the_nearest_name) {
  EXPECT_EQ(to_line(read<Settings>(R"({"rot":"/x"})", "berth.json").error()),
            "berth.json: rot: unknown member; did you mean 'root'?");
}

}  // namespace
}  // namespace berth::json
