// SPDX-License-Identifier: Apache-2.0
#include "policy/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/fields.hpp"
#include "policy/policy.hpp"

namespace berth::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Facts alices() {
  Facts facts;
  facts.user = "alice";
  facts.uid = "1000";
  facts.home = "/home/alice";
  facts.groups = {"hpc", "500"};
  facts.image = {"cuda:12", "nvcr.io/nvidia/cuda:12", "nvcr.io/nvidia/cuda"};
  facts.digests = {"sha256:ab12"};
  facts.labels = {{"tier", "gold"}, {"houdini", ""}};
  facts.image_env = {"A=image", "B=image"};
  facts.user_env = {"A=user", "C=x=y"};
  facts.partition = "gpu";
  facts.account = "physics";
  facts.features = {"x86-64-v3", "infiniband"};
  facts.gpu_types = {"h100"};
  facts.command = "/usr/bin/python3.11";
  return facts;
}

std::vector<PlacedRule> placed(std::vector<Rule> rules) {
  std::vector<PlacedRule> out;
  for (size_t i = 0; i < rules.size(); ++i) {
    out.push_back({"/etc/berth/policy.d/x.toml:" + std::to_string(i + 1), std::move(rules[i])});
  }
  return out;
}

/// Why a rule with these conditions does not apply to alice; "" where it does.
std::string why(const When& when) {
  Rule rule;
  rule.when = {when};
  Outcome outcome = evaluate(placed({rule}), alices());
  return outcome.verdicts[0].applied ? "" : outcome.verdicts[0].why;
}

TEST(Glob, takes_stars_and_question_marks_and_nothing_else) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*c", "abbc"));
  EXPECT_TRUE(matches("*a*b*", "xxaxxbxx"));
  EXPECT_TRUE(matches("nvcr.io/*", "nvcr.io/nvidia/cuda"));
  EXPECT_TRUE(matches("a?c", "a/c"));
  EXPECT_TRUE(matches("[a]", "[a]"));
  EXPECT_TRUE(matches("*.toml", ".toml.toml"));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("[a]", "a"));
  EXPECT_FALSE(matches("a*c", "abcd"));
  EXPECT_FALSE(matches("alice", "Alice"));
}

TEST(Glob, needs_no_time_for_many_stars) {
  std::string glob, text(20'000, 'a');
  for (int i = 0; i < 1000; ++i) glob += "*a";
  EXPECT_FALSE(matches(glob + "*b", text));
  EXPECT_TRUE(matches(glob + "*", text));
}

TEST(Rules, every_condition_holds_or_says_why_not) {
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({.user = {"bob", "al*"}}), "");
  EXPECT_EQ(why({.user = {"1000"}}), "");
  EXPECT_EQ(why({.user = {"bob"}}), "the user is 'alice', '1000', and the rule is for 'bob'");
  EXPECT_EQ(why({.group = {"hpc"}}), "");
  EXPECT_NE(why({.group = {"admin"}}), "");
  EXPECT_EQ(why({.image = {"nvcr.io/nvidia/*"}}), "");
  EXPECT_NE(why({.image = {"docker.io/*"}}), "");
  EXPECT_EQ(why({.digest = {"sha256:ab*"}}), "");
  EXPECT_EQ(why({.label = {"tier=g*"}}), "");
  EXPECT_EQ(why({.label = {"houdini"}}), "");
  EXPECT_EQ(why({.label = {"houdini=true", "houdini="}}), "");
  EXPECT_EQ(why({.label = {"tier=silver"}}), "the image has no 'tier=silver'");
  EXPECT_EQ(why({.partition = {"gpu*"}}), "");
  EXPECT_EQ(why({.account = {"physics"}}), "");
  EXPECT_EQ(why({.feature = {"infiniband"}}), "");
  EXPECT_EQ(why({.gpu = {"h*"}}), "");
  EXPECT_EQ(why({.gpus = false}), "");
  EXPECT_EQ(why({.gpus = true}), "no GPU was asked for");
  EXPECT_EQ(why({.group = {"x", "y"}}),
            "the groups are 'hpc', '500', and the rule is for 'x', 'y'");
  EXPECT_EQ(why({.image = {"x"}}), "the image is 'cuda:12', and the rule is for 'x'");
  EXPECT_EQ(why({.gpu = {"a100"}}), "this node's GPUs are 'h100', and the rule is for 'a100'");
}

TEST(Rules, tell_apart_who_set_a_variable) {
  EXPECT_EQ(why({.env = {"A=user"}}), "");
  EXPECT_NE(why({.env = {"A=image"}}), "");
  EXPECT_EQ(why({.image_env = {"A=image"}}), "");
  EXPECT_EQ(why({.user_env = {"C=x=y"}}), "");
  EXPECT_NE(why({.user_env = {"B"}}), "");
  EXPECT_EQ(why({.env = {"B"}}), "");
}

TEST(Rules, a_command_is_its_name_or_its_path) {
  EXPECT_EQ(why({.command = {"python*"}}), "");
  EXPECT_EQ(why({.command = {"/usr/bin/*"}}), "");
  EXPECT_EQ(why({.command = {"/opt/*"}}),
            "the command is '/usr/bin/python3.11', and the rule is for '/opt/*'");
}

TEST(Rules, all_keys_of_a_set_hold_and_any_set_will_do) {
  EXPECT_NE(why({.user = {"alice"}, .partition = {"cpu"}}), "");
  Rule rule;
  rule.when = {{.user = {"bob"}}, {.partition = {"gpu"}}};
  EXPECT_TRUE(evaluate(placed({rule}), alices()).verdicts[0].applied);
  rule.unless = {{.image = {"*cuda*"}}};
  Outcome outcome = evaluate(placed({rule}), alices());
  EXPECT_FALSE(outcome.verdicts[0].applied);
  EXPECT_EQ(outcome.verdicts[0].why, "an exception holds (unless): image '*cuda*'");
}

TEST(Rules, later_values_win_and_lists_append) {
  Rule one, two;
  one.name = "one";
  one.mounts = {"/a:/a"};
  one.memory = "1g";
  one.env = {{"X", "1"}, {"Y", "1"}};
  two.mounts = {"/b:/b"};
  two.memory = "2g";
  two.env = {{"X", "2"}};
  two.env_unset = {"Y"};
  Effects effects = evaluate(placed({one, two}), alices()).effects;
  ASSERT_EQ(effects.mounts.size(), 2U);
  EXPECT_EQ(effects.mounts[0].rule, "one");
  EXPECT_EQ(effects.mounts[1].rule, "x.toml:2");
  EXPECT_EQ(effects.memory->text, "2g");
  EXPECT_EQ(effects.env.at("X").text, "2");
  EXPECT_FALSE(effects.env.contains("Y"));
  EXPECT_TRUE(effects.env_unset.contains("Y"));
}

TEST(Rules, a_forced_value_gives_way_to_a_forced_one_alone) {
  Rule forced, later, last;
  forced.user = "caller";
  forced.force = true;
  later.user = "0:0";
  Effects effects = evaluate(placed({forced, later}), alices()).effects;
  EXPECT_EQ(effects.user->text, "caller");
  EXPECT_TRUE(effects.user->forced);
  last.user = "1:1";
  last.force = true;
  EXPECT_EQ(evaluate(placed({forced, later, last}), alices()).effects.user->text, "1:1");
}

TEST(Rules, stop_ends_and_says_so) {
  Rule first, second;
  first.name = "first";
  first.stop = true;
  second.warn = "never";
  Outcome outcome = evaluate(placed({first, second}), alices());
  EXPECT_EQ(outcome.verdicts[0].why, "gives nothing; stops here");
  EXPECT_EQ(outcome.verdicts[1].why, "rule 'first' stops");
  EXPECT_THAT(outcome.effects.warnings, IsEmpty());
  first.when = {{.user = {"bob"}}};
  EXPECT_EQ(evaluate(placed({first, second}), alices()).effects.warnings.size(), 1U);
}

TEST(Rules, a_users_name_is_one_part_of_a_path) {
  Rule rule;
  rule.mounts = {"/scratch/{user}:/scratch", "{home}:/root"};
  rule.env = {{"WHO", "{user}/{uid}"}};
  Facts facts = alices();
  Effects effects = evaluate(placed({rule}), facts).effects;
  EXPECT_EQ(effects.mounts[0].text, "/scratch/alice:/scratch");
  EXPECT_EQ(effects.mounts[1].text, "/home/alice:/root");
  EXPECT_EQ(effects.env.at("WHO").text, "alice/1000");
  for (const char* name : {"..", "", "a/b", "a:b", "{uid}"}) {
    facts.user = name;
    EXPECT_EQ(evaluate(placed({rule}), facts).effects.mounts[0].text, "/scratch/1000:/scratch");
  }
}

std::vector<std::string> faults(const Rule& rule) {
  std::vector<std::string> out;
  for (const RuleFault& fault : check(rule)) out.push_back(fault.key + ": " + fault.error.what);
  return out;
}

TEST(Rules, are_checked_key_by_key) {
  Rule rule;
  rule.when = {{.user = {" "}}, {}};
  rule.env = {{"A=B", ""}};
  rule.env_unset = {""};
  rule.gpu_capabilities = {"computing"};
  rule.hooks = {{.stage = "before", .path = "bin", .args = {}, .env = {}, .timeout = 0}};
  rule.is_signed = true;
  rule.refuse = "";
  EXPECT_THAT(
      faults(rule),
      ElementsAre(
          "when.user: an empty entry", "when: no condition, which is always true",
          "env: 'A=B' is not the name of a variable", "env-unset: '' is not the name of a variable",
          "gpu-capabilities: unknown capability 'computing'", "hooks: there is no stage 'before'",
          "hooks: expected an absolute path, got 'bin'", "hooks: a timeout is at least one second",
          "signed: signatures of images are not checked by this Berth",
          "refuse: an empty message"));
  EXPECT_THAT(faults(Rule{}), IsEmpty());
}

TEST(Rules, where_images_may_come_from_is_decided_before_they_are_here) {
  Rule rule;
  rule.registries = {"docker.io/*"};
  rule.when = {{.user = {"alice"}}};
  EXPECT_THAT(faults(rule), IsEmpty());
  rule.unless = {{.label = {"trusted"}}};
  EXPECT_THAT(faults(rule), ElementsAre(testing::StartsWith("registries: decided before")));
  rule.unless = {{.command = {"sh"}}};  // which may be the image's
  EXPECT_THAT(faults(rule), ElementsAre(testing::StartsWith("registries: decided before")));
}

TEST(Rules, come_back_from_json_as_they_were) {
  Rule rule;
  rule.name = "all";
  rule.when = {{.user = {"a"}, .gpus = false}};
  rule.stop = rule.force = rule.optional = true;
  rule.mounts = {"/a:/a"};
  rule.env_force = {{"A", "\"="}};
  rule.pids_limit = -1;
  rule.remove = false;
  rule.hooks = {{.stage = "poststop", .path = "/bin/x", .args = {"x"}, .env = {}, .timeout = 3}};
  Compiled compiled{.format = kFormat, .source = "s", .lines = {}, .policy = {}, .rules = {}};
  compiled.rules = placed({rule});
  auto read = parse_compiled(json::write(compiled), "policy.json");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(read->rules, compiled.rules);
  compiled.rules[0].rule.hooks[0].path = "x";
  auto refused = parse_compiled(json::write(compiled), "policy.json");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(to_line(refused.error()),
            "policy.json: rule 'all': hooks: expected an absolute path, got 'x'; try: berth policy "
            "apply");
}

TEST(Rules, tell_what_has_to_be_found_out_for_them) {
  Rule rule;
  EXPECT_FALSE(needs_of(placed({rule})).user);
  rule.unless = {{.group = {"x"}}};
  rule.when = {{.feature = {"y"}}};
  rule.env_default = {{"A", "{user}"}};
  Needs needs = needs_of(placed({rule}));
  EXPECT_TRUE(needs.groups && needs.group_names && needs.node && needs.user);
  // A number is compared with a number.
  rule = {};
  rule.when = {{.user = {"1000"}, .group = {"500", "501"}}};
  EXPECT_TRUE(needs_of(placed({rule})).groups);
  EXPECT_FALSE(needs_of(placed({rule})).user || needs_of(placed({rule})).group_names);
  rule.when[0].group.push_back("5*");
  EXPECT_TRUE(needs_of(placed({rule})).group_names);
}

}  // namespace
}  // namespace berth::policy
