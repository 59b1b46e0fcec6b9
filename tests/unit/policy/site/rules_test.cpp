// SPDX-License-Identifier: Apache-2.0
#include "policy/site/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/site/houdini.hpp"
#include "policy/site/site.hpp"

namespace berth::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

SiteFile read(std::string_view text, SiteKeys keys = SiteKeys::rules) {
  auto file = read_site(text, "10.toml", keys);
  if (!file.ok()) {
    ADD_FAILURE() << to_line(file.error()) << "\n" << text;
    return {};
  }
  return std::move(*file);
}

std::vector<std::string> rule_faults(std::string_view text, SiteKeys keys = SiteKeys::rules) {
  std::vector<std::string> out;
  for (const Error& fault : read(text, keys).faults) {
    EXPECT_EQ(fault.kind, Kind::usage);
    out.push_back(fault.what);
  }
  return out;
}

TEST(SiteRules, take_what_people_write) {
  SiteFile file = read(R"(# scratch
[[rule]]
name = "scratch"
when = { group = "hpc", gpus = true }
mounts = ["/scratch:/scratch",
          "/data:/data:ro"]
env.LM_LICENSE = "27000@lic"
env-force = { A = "1", B = "2" }
cpus = 4
optional = true

[[rule]]
memory = "4g"
[[rule.when]]
user = ["a", "b"]
[[rule.when]]
partition = "gpu"
[rule.unless]
image = "x"
[[rule.hooks]]
stage = "createRuntime"
path = "/usr/bin/x"
args = ["x", "y"]
)");
  EXPECT_THAT(file.faults, IsEmpty());
  ASSERT_EQ(file.compiled.rules.size(), 2U);
  const PlacedRule& one = file.compiled.rules[0];
  EXPECT_EQ(one.place, "10.toml:2");
  EXPECT_THAT(one.rule.when.at(0).group, ElementsAre("hpc"));
  EXPECT_EQ(one.rule.when.at(0).gpus, true);
  EXPECT_THAT(one.rule.mounts, ElementsAre("/scratch:/scratch", "/data:/data:ro"));
  EXPECT_THAT(one.rule.env, ElementsAre(Pair("LM_LICENSE", "27000@lic")));
  EXPECT_THAT(one.rule.env_force, ElementsAre(Pair("A", "1"), Pair("B", "2")));
  EXPECT_EQ(one.rule.cpus, "4");
  const Rule& two = file.compiled.rules[1].rule;
  ASSERT_EQ(two.when.size(), 2U);
  EXPECT_THAT(two.when[1].partition, ElementsAre("gpu"));
  EXPECT_THAT(two.unless.at(0).image, ElementsAre("x"));
  ASSERT_EQ(two.hooks.size(), 1U);
  EXPECT_THAT(two.hooks[0].args, ElementsAre("x", "y"));
}

TEST(SiteRules, every_fault_has_its_line_and_hides_no_other) {
  EXPECT_THAT(rule_faults(R"([[rule]]
moutns = ["/a:/a"]
when = { usr = "x" }
env = { A = 1 }
force = "yes"

[[rule]]
hooks = [{ stage = "createRuntime" }]
[[rule]]
env-unset = ["A=B"]
[[rule]]
when = [
  { user = "a" },
  { gpus = "yes" },
]
[gpu]
bind = true
)"),
              ElementsAre("10.toml:2: moutns: unknown key; did you mean 'mounts'?",
                          "10.toml:3: when.usr: unknown key; did you mean 'user'?",
                          "10.toml:4: env.A: expected a string, got a number",
                          "10.toml:5: force: expected true or false, got a string",
                          "10.toml:8: hooks.path: missing",
                          "10.toml:10: env-unset: 'A=B' is not the name of a variable",
                          "10.toml:14: when.gpus: expected true or false, got a string",
                          "10.toml:17: gpu.bind: only [[rule]] is allowed in policy.d"));
}

TEST(SiteRules, are_tables_of_an_array) {
  for (const char* text : {"rule = 1", "[rule]\nmounts = []", "rule = []", "rule = [1]"}) {
    EXPECT_THAT(rule_faults(text), ElementsAre(HasSubstr("10.toml:"))) << text;
  }
  EXPECT_THAT(rule_faults("[[rule]]\nwhen = 1"),
              ElementsAre("10.toml:2: when: expected a table, got a number"));
  EXPECT_THAT(rule_faults("[[rule]]\nenv = 1"),
              ElementsAre("10.toml:2: env: expected a table of NAME = \"value\""));
  EXPECT_THAT(rule_faults("[[rule]]\nhooks = 1"), ElementsAre(HasSubstr("10.toml:2: hooks: ")));
  EXPECT_THAT(rule_faults("[[rule]]\nplace = \"x\""), ElementsAre(HasSubstr("unknown key")));
}

TEST(SiteRules, stand_in_policy_toml_too) {
  SiteFile file = read("[gpu]\nbind = false\n[[rule]]\nwarn = \"x\"\n", SiteKeys::all);
  EXPECT_THAT(file.faults, IsEmpty());
  EXPECT_EQ(file.compiled.rules.size(), 1U);
  EXPECT_FALSE(file.compiled.policy.gpu.bind);
}

// ---- houdini.ini -------------------------------------------------------------------------------

/// The rules of a houdini.ini, which have no fault.
SiteFile imported_houdini(std::string_view ini) {
  auto toml = import_houdini(ini, "houdini.ini");
  if (!toml.ok()) {
    ADD_FAILURE() << to_line(toml.error());
    return {};
  }
  SiteFile file = read(*toml);
  for (const Error& fault : file.faults) ADD_FAILURE() << fault.what << "\n" << *toml;
  return file;
}

Outcome outcome(std::string_view ini, const Facts& facts) {
  return evaluate(imported_houdini(ini).compiled.rules, facts);
}

Facts with_env(std::vector<std::string> entries) {
  Facts facts;
  facts.user_env = std::move(entries);
  return facts;
}

constexpr std::string_view kSlides = R"([default]
mounts=/home:/home,/usr/lib/nvidia-384:/usr/lib/nvidia
environment=LD_LIBRARY_PATH=/usr/lib/nvidia,NVIDIA_VISIBLE_DEVICES=all
#devices=/dev/nvidiactl,/dev/nvidia-uvm

[user]
)";

TEST(Houdini, the_file_of_the_talk_is_for_every_container) {
  EXPECT_TRUE(is_houdini(kSlides));
  Effects effects = outcome(kSlides, {}).effects;
  ASSERT_EQ(effects.mounts.size(), 2U);
  EXPECT_EQ(effects.mounts[0].text, "/home:/home");
  EXPECT_EQ(effects.mounts[1].text, "/usr/lib/nvidia-384:/usr/lib/nvidia");
  EXPECT_EQ(effects.env.at("LD_LIBRARY_PATH").text, "/usr/lib/nvidia");
  EXPECT_EQ(effects.env.at("NVIDIA_VISIBLE_DEVICES").text, "all");
  EXPECT_TRUE(effects.env_force.empty());
  EXPECT_THAT(effects.devices, IsEmpty());
}

TEST(Houdini, separators_count_before_the_next_name_alone) {
  EXPECT_THAT(split_environment("A=1,2;3|4,B=x=y=z,C=,D=u"),
              ElementsAre(Pair("A", "1,2;3|4"), Pair("B", "x=y=z"), Pair("C", ""), Pair("D", "u")));
  EXPECT_THAT(split_environment(" A = 1"), IsEmpty());
  EXPECT_THAT(split_environment(", B=2"), ElementsAre(Pair("B", "2")));
  EXPECT_THAT(split_environment("A=/x:/y, B_2=--opt=1,3=4"),
              ElementsAre(Pair("A", "/x:/y"), Pair("B_2", "--opt=1,3=4")));
  EXPECT_THAT(split_environment(""), IsEmpty());
}

TEST(Houdini, a_text_has_one_separator_and_the_others_belong_to_values) {
  EXPECT_THAT(split_environment("A=x,B=1;C=2|D=3,E=4"),
              ElementsAre(Pair("A", "x,B=1;C=2"), Pair("D", "3,E=4")));
  EXPECT_THAT(split_environment("OPTS=--set,KEY=1;N=0,1"),
              ElementsAre(Pair("OPTS", "--set,KEY=1"), Pair("N", "0,1")));
  EXPECT_THAT(split_environment("A=1|2,B=3"), ElementsAre(Pair("A", "1|2"), Pair("B", "3")));
}

TEST(Houdini, acts_where_one_of_its_triggers_is_there) {
  std::string ini = "[default]\ntrigger-env=SITE\nmounts=/a:/a\n";
  EXPECT_THAT(outcome(ini, {}).effects.mounts, IsEmpty());
  EXPECT_THAT(outcome(ini, with_env({"SITE=false"})).effects.mounts, IsEmpty());
  for (const char* entry : {"SITE=true", "HOUDINI_GPU_ENABLED=true", "NVIDIA_VISIBLE_DEVICES=0",
                            "HOUDINI_GPU_REQUESTED=2"}) {
    EXPECT_EQ(outcome(ini, with_env({entry})).effects.mounts.size(), 1U) << entry;
  }
  Facts labelled;
  labelled.labels = {{"houdini", "true"}};
  EXPECT_EQ(outcome(ini, labelled).effects.mounts.size(), 1U);
  EXPECT_EQ(outcome("[default]\nforce-houdini=true\nmounts=/a:/a\n", {}).effects.mounts.size(), 1U);
  EXPECT_THAT(outcome("[default]\nforce-houdini=false\nmounts=/a:/a\n", {}).effects.mounts,
              IsEmpty());
}

TEST(Houdini, force_environment_is_over_the_users) {
  Effects effects = outcome("[default]\nforce-environment=true\nenvironment=A=1|B=2\n", {}).effects;
  EXPECT_EQ(effects.env_force.at("B").text, "2");
  EXPECT_TRUE(effects.env.empty());
}

TEST(Houdini, the_user_is_kept_by_label_or_variable) {
  std::string ini = "[user]\nmode=static\ndefault=1000:100\n";
  Effects effects = outcome(ini, {}).effects;
  EXPECT_EQ(effects.user->text, "1000:100");
  EXPECT_TRUE(effects.user->forced);
  EXPECT_FALSE(outcome(ini, with_env({"HOUDINI_USER_KEEP=true"})).effects.user);
  EXPECT_FALSE(outcome(ini, with_env({"HOUDINI_KEEP_USER=true"})).effects.user);
  Facts labelled;
  labelled.labels = {{"houdini.user.keep", "true"}};
  EXPECT_FALSE(outcome(ini, labelled).effects.user);
  EXPECT_TRUE(outcome("[user]\nmode=default\ndefault=0:0\n", {}).effects.user->forced);
}

TEST(Houdini, the_user_of_a_variable_is_the_default_where_it_is_not_set) {
  std::string ini = "[user]\nmode=env\nkey=WHO\ndefault=1:1\n";
  EXPECT_EQ(outcome(ini, {}).effects.user->text, "1:1");
  Facts says;
  says.user_env = {"WHO=alice"};
  EXPECT_EQ(outcome(ini, says).effects.user->text, "env:WHO");
  says.user_env = {"WHO="};
  EXPECT_EQ(outcome(ini, says).effects.user->text, "1:1");
  EXPECT_FALSE(outcome("[user]\nmode=env\n", {}).effects.user);
}

TEST(Houdini, a_label_beats_the_removal_of_the_file) {
  Facts keeps, goes;
  keeps.labels = {{"houdini.container.remove", "false"}};
  goes.labels = {{"houdini.container.remove", "true"}};
  std::string removes = "[container]\nremove=true\n";
  EXPECT_EQ(outcome(removes, {}).effects.remove->text, "true");
  EXPECT_FALSE(outcome(removes, keeps).effects.remove);
  keeps.labels = {{"houdini.container.remove", "no"}};
  EXPECT_FALSE(outcome(removes, keeps).effects.remove);
  EXPECT_EQ(outcome(removes, goes).effects.remove->text, "true");
  EXPECT_EQ(outcome("[container]\nremove=false\n", goes).effects.remove->text, "true");
  EXPECT_FALSE(outcome("[container]\nremove=false\n", {}).effects.remove);
}

TEST(Houdini, gpus_by_number_and_by_trigger) {
  std::string ini = "[gpu]\nmounts=/opt/gpu:/opt/gpu\nenvironment=G=1\ntrigger-label=accel\n";
  EXPECT_FALSE(outcome(ini, {}).effects.gpus);
  EXPECT_THAT(outcome(ini, {}).effects.mounts, IsEmpty());
  Effects two = outcome(ini, with_env({"HOUDINI_GPU_REQUESTED=2"})).effects;
  EXPECT_EQ(two.gpus->text, "env:HOUDINI_GPU_REQUESTED");
  EXPECT_EQ(two.mounts.size(), 1U);
  EXPECT_EQ(two.env.at("G").text, "1");
  Facts labelled;
  labelled.labels = {{"accel", "true"}};
  EXPECT_EQ(outcome(ini, labelled).effects.gpus->text, "all");
}

TEST(Houdini, a_gpu_section_of_triggers_alone_gives_gpus) {
  std::string ini = "[gpu]\ntrigger-env=ACCEL\ntrigger-label=accel\n";
  EXPECT_FALSE(outcome(ini, {}).effects.gpus);
  EXPECT_EQ(outcome(ini, with_env({"ACCEL=true"})).effects.gpus->text, "all");
  EXPECT_EQ(outcome("[gpu]\n", with_env({"HOUDINI_GPU_ENABLED=1"})).effects.gpus->text, "all");
  EXPECT_FALSE(outcome("[default]\n", with_env({"HOUDINI_GPU_ENABLED=1"})).effects.gpus);
}

TEST(Houdini, a_variable_of_both_sections_is_the_first_ones_unless_it_is_forced) {
  std::string ini = "[default]\nenvironment=A=1\n[gpu]\nenvironment=A=2,B=2\n";
  Effects effects = outcome(ini, with_env({"HOUDINI_GPU_ENABLED=true"})).effects;
  EXPECT_EQ(effects.env.at("A").text, "1");
  EXPECT_EQ(effects.env.at("B").text, "2");
  ini += "force-environment=true\n";
  effects = outcome(ini, with_env({"HOUDINI_GPU_ENABLED=true"})).effects;
  EXPECT_EQ(effects.env_force.at("A").text, "2");
}

// Every key of HOUDINI.md and of pkg/houdini.
constexpr std::string_view kWholeHoudini = R"([default]
debug=true
force-houdini=false
trigger-label=site
trigger-env=SITE_ENABLED
mounts=/home:/home:ro
environment=A=1;B=2
force-environment=false
devices=/dev/nvidiactl,/dev/nvidia-uvm
[container]
remove=true
remove-label=site.remove
privileged-trigger-env=SITE_PRIVILEGED
[user]
mode=env
default=1000:1000
key=SITE_USER
keep-user-label=site.keep
keep-user-env=SITE_KEEP
set-home-env=true
[gpu]
force=true
trigger-env=SITE_GPU
trigger-label=site-gpu
mounts=/usr/lib/nvidia:/usr/lib/nvidia
environment=C=3
force-environment=true
cuda-libpath=/usr/lib/x86_64-linux-gnu
cuda-files=libcuda,libnvidia
[cuda]
files=libcuda
libpath=/usr/lib
)";

TEST(Houdini, every_key_becomes_a_line_or_a_reason) {
  auto toml = import_houdini(kWholeHoudini, "houdini.ini");
  ASSERT_TRUE(toml.ok());
  for (const char* text :
       {"# default.debug: ",
        "# container.privileged-trigger-env: not translated: a variable "
        "(SITE_PRIVILEGED) makes no container privileged",
        "# user.set-home-env: ", "# gpu.force: ", "# gpu.cuda-libpath: ", "# gpu.cuda-files: ",
        "# cuda.files: ", "# cuda.libpath: ", "env:SITE_USER", "SITE_KEEP=true", "site.keep",
        "label = [\"site.remove\"]", "SITE_GPU=true", "site-gpu=true", "SITE_ENABLED=true",
        "site=true", "env-force = { C = \"3\" }", "env = { A = \"1\", B = \"2\" }",
        "devices = [\"/dev/nvidiactl\", \"/dev/nvidia-uvm\"]"}) {
    EXPECT_THAT(*toml, HasSubstr(text));
  }
  EXPECT_THAT(*toml, Not(HasSubstr("not a key that is known")));
  imported_houdini(kWholeHoudini);
}

TEST(Houdini, what_is_foreign_stays_in_its_comment_or_text) {
  imported_houdini("[default]\nmounts=/a\"]:/a\nx\x1b[2J=1\n");
  imported_houdini("[user]\nmode=\xff\xfe\n[default]\nenvironment=A=\xff\"\n");
  EXPECT_THAT(*import_houdini("[gpu]\nfiels=1\n", "x.ini"),
              HasSubstr("# gpu.fiels: not a key that is known to Berth"));
  auto broken = import_houdini("[default]\nmounts\n", "x.ini");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(to_line(broken.error()), "x.ini:2: expected [SECTION] or KEY=VALUE");
  EXPECT_FALSE(is_houdini("[nvidia-container-cli]\nroot = \"/\"\n"));
}

}  // namespace
}  // namespace berth::policy
