// SPDX-License-Identifier: Apache-2.0
#include "cli/template/template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

using namespace berth;
using namespace berth::cli;

namespace {

constexpr std::string_view kMaps[] = {"Labels", "Ports", "Sysctls", "Volumes"};
constexpr std::string_view kLists[] = {"Binds", "Entrypoint"};
constexpr std::string_view kAbsent[] = {"Health"};
constexpr std::string_view kBlank[] = {"StopSignal"};

/// What `text` prints of a small document; errors as "error: …".
std::string shown(std::string_view text) {
  const json::Value document = json::reparse(R"({
    "Id": "0123456789abcdef", "Name": "/one", "Size": 1982305, "Half": 0.5, "Zero": 0, "Empty": "",
    "Args": ["-c", "true"], "Mixed": ["a", 1], "None": [],
    "State": {"Status": "running", "Pid": 42, "Running": true, "Dead": false, "Error": null},
    "Labels": {"b": "2", "a": "1"}, "Ports": {"80/tcp": [{"HostPort": "8080"}]},
    "Mounts": [{"Type": "bind", "Source": "/tmp"}, {"Type": "volume", "Source": "/v"}],
    "Sysctls": null, "Log": {"Type": "j", "Config": {}}, "Volumes": {"/v": {}}, "Binds": null, "Word": "größe <b>&"})");
  auto made = Template::parse(text);
  if (!made.ok()) return "error: " + to_line(made.error());
  auto done = made->execute({document, {kMaps, kLists, kAbsent, kBlank}});
  return done.ok() ? *done : "error: " + to_line(done.error());
}

struct Case {
  std::string_view text, expected;
};

void check(std::initializer_list<Case> cases) {
  for (const Case& one : cases) EXPECT_EQ(shown(one.text), one.expected) << one.text;
}

TEST(Template, prints_fields_of_fields) {
  check({{"", ""},
         {"plain } text", "plain } text"},
         {"{{.Name}}", "/one"},
         {"{{ .State.Status }}|{{.State.Pid}}", "running|42"},
         {"{{.State.Running}} {{.State.Dead}}", "true false"},
         {"{{.Size}} {{.Half}} {{.Zero}}", "1982305 0.5 0"},
         {"{{(.State).Status}}", "running"},
         {"{{(index .Mounts 1).Source}}", "/v"},
         {"{{.\n  Name}}", "error: template, line 2, column 3: unknown function 'Name'"}});
}

TEST(Template, prints_what_is_no_string_as_go_does) {
  check({{"{{.Args}}", "[-c true]"},
         {"{{.State}}", "{running 42 true false <nil>}"},
         {"{{.Labels}}", "map[a:1 b:2]"},
         {"{{.Log}} {{.Volumes}}", "{j map[]} map[/v:{}]"},
         {"{{index .Ports \"81/tcp\"}}", "<no value>"},
         {"{{.Mounts}}", "[{bind /tmp} {volume /v}]"},
         {"{{.Sysctls}} {{.Binds}} {{.State.Error}} {{.Health}}<{{.StopSignal}}>",
          "map[] [] <nil> <nil><>"},
         {"{{.Labels.none}} {{index .Labels \"none\"}}", "<no value> "}});
}

TEST(Template, an_unknown_field_names_itself_and_the_nearest) {
  check({{"{{.Nmae}}", "error: template, column 3: unknown field 'Nmae', did you mean 'Name'?"},
         {"{{.State.Stauts}}",
          "error: template, column 3: unknown field 'Stauts', did you mean 'Status'?"},
         {"a\n b {{.Xyzzyxyzzy}}", "error: template, line 2, column 6: unknown field 'Xyzzyxyzzy'"},
         {"{{.Name.First}}", "error: template, column 3: no field 'First' in a string"},
         {"{{.Health.Status}}", "error: template, column 3: no field 'Status' in nothing"}});
}

TEST(Template, if_else_if_else) {
  check(
      {{"{{if .State.Running}}up{{else}}down{{end}}", "up"},
       {"{{if .State.Dead}}dead{{else if .State.Running}}up{{else}}?{{end}}", "up"},
       {"{{if .State.Dead}}dead{{else if .Zero}}zero{{else}}?{{end}}", "?"},
       {"{{if .Empty}}x{{end}}{{if .None}}y{{end}}{{if .Zero}}z{{end}}{{if .Health}}h{{end}}", ""},
       {"{{if .State}}struct{{end}}{{if .Sysctls}}map{{end}}", "struct"},
       {"{{if $x := .Name}}{{$x}}{{end}}", "/one"},
       {"{{if not .State.Dead}}alive{{end}}", "alive"}});
}

TEST(Template, with_moves_the_dot_and_dollar_does_not) {
  check({{"{{with .State}}{{.Pid}} {{$.Name}}{{end}}", "42 /one"},
         {"{{with .Empty}}x{{else}}none{{end}}", "none"},
         {"{{with .Health}}{{.Status}}{{end}}", ""},
         {"{{with $s := .State}}{{$s.Pid}}{{end}}", "42"},
         {"{{with .Empty}}x{{else with .Name}}{{.}}{{end}}", "/one"}});
}

TEST(Template, range_over_lists_and_maps) {
  check({{"{{range .Args}}<{{.}}>{{end}}", "<-c><true>"},
         {"{{range $i, $a := .Args}}{{$i}}={{$a}};{{end}}", "0=-c;1=true;"},
         {"{{range $k, $v := .Labels}}{{$k}}={{$v}};{{end}}", "a=1;b=2;"},
         {"{{range .None}}x{{else}}none{{end}}{{range .Binds}}x{{else}}none{{end}}", "nonenone"},
         {"{{range .Mounts}}{{.Type}}:{{$.Name}} {{end}}", "bind:/one volume:/one "},
         {"{{range $p, $c := .Ports}}{{$p}} -> {{(index $c 0).HostPort}}{{end}}", "80/tcp -> 8080"},
         {"{{range .Args}}{{.}}{{break}}{{end}}", "-c"},
         {"{{range .Args}}{{if eq . \"-c\"}}{{continue}}{{end}}{{.}}{{end}}", "true"},
         {"{{range .Name}}{{end}}", "error: template, column 9: cannot range over a string"},
         {"{{break}}", "error: template, column 3: '{{break}}' outside of a range"}});
}

TEST(Template, variables_live_to_the_end_of_their_block) {
  check(
      {{"{{$x := 1}}{{$x}}{{$x = 2}}{{$x}}", "12"},
       {"{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "2"},
       {"{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "21"},
       {"{{$last := \"\"}}{{range .Args}}{{$last = .}}{{end}}{{$last}}", "true"},
       {"{{$x := .State}}{{$x.Pid}}", "42"},
       {"{{if true}}{{$x := 2}}{{end}}{{$x}}", "error: template, column 32: unknown variable '$x'"},
       {"{{$name := 1}}{{$nmae}}",
        "error: template, column 17: unknown variable '$nmae', did you mean '$name'?"},
       {"{{$a, $b := .Args}}", "error: template, column 5: only a range declares two variables"}});
}

TEST(Template, pipelines_hand_on_the_last_argument) {
  check({{"{{.Name | upper}}", "/ONE"},
         {"{{.Name | printf \"%s-%s\" \"a\"}}", "a-/one"},
         {"{{.Args | len | printf \"%03d\"}}", "002"},
         {"{{printf \"%s\" (upper .Name)}}", "/ONE"},
         {"{{.Name | \"x\"}}", "error: template, column 11: expected a function after '|'"},
         {"{{.Name .Id}}", "error: template, column 3: only a function takes arguments"}});
}

TEST(Template, compares) {
  check(
      {{"{{eq .Zero 0}} {{eq .Name \"/one\"}} {{eq .Name \"a\" \"/one\"}}", "true true true"},
       {"{{ne 1 2}} {{lt 1 2}} {{le 2 2}} {{gt 1 2}} {{ge \"b\" \"a\"}}",
        "true true true false true"},
       {"{{eq true .State.Running}} {{eq .Half 0.5}} {{eq .State.Error nil}}", "true true true"},
       {"{{eq .Name 1}}", "error: template, column 3: 'eq' cannot compare a string with a number"},
       {"{{lt true false}}",
        "error: template, column 3: 'lt' cannot order true or false and true or false"},
       {"{{eq 1}}", "error: template, column 3: 'eq' takes at least 2 arguments, got 1"},
       {"{{lt 1 2 3}}", "error: template, column 3: 'lt' takes 2 arguments, got 3"}});
}

TEST(Template, and_or_stop_at_what_decides) {
  check({{"{{and 1 0 .Nowhere}}", "0"},
         {"{{or \"\" \"b\" .Nowhere}}", "b"},
         {"{{and .State.Running .Name}}", "/one"},
         {"{{or .Zero .Empty}}", ""},
         {"{{not 0}}", "true"},
         {"{{and}}", "error: template, column 3: 'and' takes at least 1 argument, got 0"}});
}

TEST(Template, parts_of_strings_lists_and_maps) {
  check({{"{{len .Name}} {{len .Args}} {{len .Labels}} {{len .Binds}}", "4 2 2 0"},
         {"{{index .Args 1}} {{index .Labels \"b\"}} {{index .State \"Pid\"}}", "true 2 42"},
         {"{{index .Ports \"80/tcp\" 0}}", "{8080}"},
         {"{{slice .Id 0 4}} {{slice .Args 1}} {{slice .Id 14}}", "0123 [true] ef"},
         {"{{index .Args 2}}", "error: template, column 3: 'index' has no element 2 of 2"},
         {"{{index .Args -1}}", "error: template, column 3: 'index' has no element -1 of 2"},
         {"{{index .Args \"x\"}}",
          "error: template, column 3: 'index' expects a whole number, got a string"},
         {"{{index .Size 1}}", "error: template, column 3: 'index' cannot look into a number"},
         {"{{slice .Id 4 2}}", "error: template, column 3: 'slice' has no part 4 to 2 of 16"},
         {"{{len 3}}", "error: template, column 3: 'len' cannot count a number"}});
}

TEST(Template, functions_of_docker) {
  check({{"{{json .State}}",
          R"({"Status":"running","Pid":42,"Running":true,"Dead":false,"Error":null})"},
         {"{{json .Word}} {{json .Args}}", R"("größe <b>&" ["-c","true"])"},
         {"{{join .Args \" \"}}|{{join .Binds \",\"}}", "-c true|"},
         {"{{range split .Name \"n\"}}<{{.}}>{{end}}", "</o><e>"},
         {"{{len (split \"abc\" \"\")}}", "3"},
         {"{{upper .Word}} {{lower \"ABC\"}} {{title \"a bc-d_e\"}}", "GRößE <B>& abc A Bc-D_e"},
         {"<{{pad .Name 1 2}}><{{pad .Empty 1 2}}>", "< /one  ><>"},
         {"{{truncate .Id 4}} {{truncate .Name 40}}", "0123 /one"},
         {"{{join .Mixed \",\"}}", "error: template, column 3: 'join' expects a list of strings"},
         {"{{join .Name \",\"}}", "error: template, column 3: 'join' expects a list, got a string"},
         {"{{upper .Zero}}", "error: template, column 3: 'upper' expects a string, got a number"},
         {"{{truncate .Id -1}}",
          "error: template, column 3: 'truncate' expects a number of bytes, got a negative one"}});
}

TEST(Template, print_println_printf) {
  check({{"{{print .Name 1 2 \"x\" \"y\"}}", "/one1 2xy"},
         {"{{range .Args}}{{println .}}{{end}}", "-c\ntrue\n"},
         {"{{println 1 \"a\"}}", "1 a\n"},
         {"{{printf \"%s|%5s|%-5s|%.2s|%q\" \"abc\" \"ab\" \"ab\" \"abc\" \"a\\\"\"}}",
          "abc|   ab|ab   |ab|\"a\\\"\""},
         {"{{printf \"%d|%5d|%-5d|%05d|%+d|%x|%X|%#x|%o|%b|%c\" 7 7 7 7 7 255 255 255 8 5 65}}",
          "7|    7|7    |00007|+7|ff|FF|0xff|10|101|A"},
         {"{{printf \"%v %v %v %v\" 1 \"a\" true .Args}}", "1 a true [-c true]"},
         {"{{printf \"%.1f|%6.2f|%e|%g\" 1.25 3.14159 1000.0 0.5}}", "1.2|  3.14|1.000000e+03|0.5"},
         {"{{printf \"%t %%\" false}}", "false %"},
         {"{{printf \"%*d\" 4 7}}", "   7"},
         {"{{printf \"%d\" \"x\"}}", "%!d(string=x)"},
         {"{{printf \"%s %s\" \"x\"}}", "x %!s(MISSING)"},
         {"{{printf \"%s\" \"x\" 1}}", "x%!(EXTRA int=1)"},
         {"{{printf \"%999999d\" 1}}",
          "error: template, column 3: 'printf' pads to more than 10000"}});
}

TEST(Template, constants) {
  check({{R"({{"a\tb\n\"\\\x41\u00e9"}})", "a\tb\n\"\\A\u00e9"},
         {"{{`raw \\n`}}", "raw \\n"},
         {"{{'a'}} {{'\\n'}} {{'\u00e9'}}", "97 10 233"},
         {"{{0x1F}} {{0b11}} {{0o17}} {{017}} {{1_000}} {{-5}} {{+5}}", "31 3 15 15 1000 -5 5"},
         {"{{1.5}} {{1e3}} {{true}} {{false}}", "1.5 1000 true false"},
         {"{{nil}}", "error: template, column 3: 'nil' is not a command"},
         {"{{1x}}", "error: template, column 3: not a number: '1x'"},
         {"{{99999999999999999999}}",
          "error: template, column 3: not a number: '99999999999999999999'"},
         {"{{'ab'}}",
          "error: template, column 3: a character constant holds one character; strings stand in "
          "'\"'"},
         {"{{\"\\q\"}}", "error: template, column 4: unknown escape '\\q'"}});
}

TEST(Template, trims_and_comments) {
  check({{"a  {{- .Zero -}}  b", "a0b"},
         {"a \n{{- 1}} b", "a1 b"},
         {"a{{/* a comment\n of two lines */}}b", "ab"},
         {"a {{- /* trimmed */ -}} b", "ab"},
         {"{{- .Zero}}", "0"},
         {"{{-3}}", "-3"},
         {"{{/* x */ .Name}}", "error: template, column 10: a comment ends in '*/}}'"},
         {"{{/* x", "error: template, column 1: '/*' without its '*/'"}});
}

TEST(Template, wrong_syntax_is_refused_with_its_place) {
  check({{"{{.Foo", "error: template, column 1: '{{' without its '}}'"},
         {"{{}}", "error: template, column 3: expected a value instead of '}}'"},
         {"{{end}}",
          "error: template, column 3: '{{end}}' without its '{{if}}', '{{range}}' or '{{with}}'"},
         {"{{if .Id}}", "error: template, column 1: '{{if}}' without its '{{end}}'"},
         {"{{if .Id}}{{else}}", "error: template, column 1: '{{if}}' without its '{{end}}'"},
         {"{{if .Id}}{{else}}{{else}}{{end}}", "error: template, column 21: a second '{{else}}'"},
         {"{{if .Id}}{{else with .Id}}{{end}}",
          "error: template, column 18: '{{else with}}' in '{{if}}'"},
         {"{{nofunc .Id}}", "error: template, column 3: unknown function 'nofunc'"},
         {"{{uper .Id}}",
          "error: template, column 3: unknown function 'uper', did you mean 'upper'?"},
         {"{{define \"x\"}}{{end}}", "error: template, column 3: 'define' is not supported"},
         {"{{(.Id}}", "error: template, column 3: '(' without its ')'"},
         {"{{.Id)}}", "error: template, column 6: expected '}}' instead of ')'"},
         {"{{.Id | }}", "error: template, column 9: expected a value instead of '}}'"},
         {"{{\"abc}}", "error: template, column 3: a string without its end"},
         {"{{`abc}}", "error: template, column 3: '`' without its end"},
         {"{{.Id\"x\"}}", "error: template, column 6: expected a blank before '\"x\"'"},
         {"{{.Id & 1}}", "error: template, column 7: unexpected '&'"},
         {"{{\x1b[31m}}", "error: template, column 3: unexpected '\\x1b'"},
         {"{{if}}{{end}}", "error: template, column 5: expected a value instead of '}}'"}});
}

TEST(Template, hostile_text_ends_in_an_error) {
  EXPECT_EQ(shown(std::string(70'000, 'x')), "error: template, column 1: longer than 64 KiB");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{{if 1}}";
  EXPECT_EQ(shown(deep), "error: template, column 513: nested too deeply");
  EXPECT_EQ(shown("{{" + std::string(100, '(') + "1" + std::string(100, ')') + "}}"),
            "error: template, column 67: nested too deeply");
  std::string doubled = "{{$x := \"xxxxxxxxxxxxxxxx\"}}";
  for (int i = 0; i < 40; ++i) doubled += "{{$x = print $x $x}}";
  EXPECT_EQ(shown(doubled), "error: template, column 436: 'print' makes more than 16 MiB");
  std::string quoted = "{{\"\\\"\"";
  for (int i = 0; i < 60; ++i) quoted += "|json";
  EXPECT_THAT(shown(quoted + "}}"), testing::EndsWith("'json' makes more than 16 MiB"));
  std::string many = "{{$s := split (printf \"%1000d\" 1) \"\"}}";
  for (int i = 0; i < 4; ++i) many += "{{range $s}}";
  for (int i = 0; i < 4; ++i) many += "{{end}}";
  EXPECT_THAT(shown(many), testing::EndsWith("takes more than 500000 steps"));
  std::string wide =
      "{{$s := split (printf \"%1000d\" 1) \"\"}}{{range $s}}{{range $s}}{{printf "
      "\"%1000d\" 1}}{{end}}{{end}}";
  EXPECT_THAT(shown(wide), testing::EndsWith("prints more than 16 MiB"));
}

TEST(Template, knows_the_fields_that_it_uses) {
  auto made = Template::parse("{{range .Mounts}}{{if .Source}}{{(index $.Args 0)}}{{end}}{{end}}");
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->uses("Mounts"));
  EXPECT_TRUE(made->uses("Source"));
  EXPECT_TRUE(made->uses("Args"));
  EXPECT_FALSE(made->uses("Size"));
}

TEST(Template, checks_fields_where_nothing_is_listed) {
  auto error = [](std::string_view text) -> std::string {
    auto checked = Template::parse(text)->check_fields({"ID", "Names", "Label"});
    return checked.ok() ? "" : to_line(checked.error());
  };
  EXPECT_EQ(error("{{.ID}} {{.Names | upper}} {{.Label \"x\"}}"), "");
  EXPECT_EQ(error("{{.ID}} {{.Name}}"),
            "template, column 11: unknown field 'Name', did you mean 'Names'?");
  EXPECT_EQ(error("{{if (eq .Foobarbaz 1)}}{{end}}"),
            "template, column 10: unknown field 'Foobarbaz'");
  EXPECT_EQ(error("{{with .ID}}{{.Anything}}{{$.Nmaes}}{{end}}"),
            "template, column 28: unknown field 'Nmaes', did you mean 'Names'?");
}

TEST(Template, a_label_is_asked_for_by_its_key) {
  const json::Value row = json::Object{{"ID", "1"}};
  TemplateData data{row, {}, Functions::values, [](std::string_view key) {
                      return "<" + std::string(key) + ">";
                    }};
  EXPECT_EQ(*Template::parse("{{.Label \"com.x\"}} {{\"k\" | .Label}} {{upper (.Label \"y\")}}")
                 ->execute(data),
            "<com.x> <k> <Y>");
  EXPECT_EQ(to_line(Template::parse("{{.Label \"a\" \"b\"}}")->execute(data).error()),
            "template, column 3: '.Label' takes 1 argument");
  EXPECT_EQ(to_line(Template::parse("{{.Label 1}}")->execute(data).error()),
            "template, column 3: '.Label' expects a string, got a number");
}

TEST(Template, titles_are_not_changed) {
  const json::Value row = json::Object{{"ID", "CONTAINER ID"}};
  EXPECT_EQ(*Template::parse("{{lower .ID}} {{json .ID}} {{truncate .ID 3}}")
                 ->execute({row, {}, Functions::titles}),
            "CONTAINER ID CONTAINER ID CONTAINER ID");
}

}  // namespace
