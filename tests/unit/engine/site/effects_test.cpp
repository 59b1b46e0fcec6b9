// SPDX-License-Identifier: Apache-2.0
#include "engine/site/effects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/request/environment.hpp"

namespace berth::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class SiteWarnings final : public Log {
 public:
  void debug(const std::string&) override {}
  void warn(const std::string& text) override { texts.push_back(text); }
  std::vector<std::string> texts;
};

policy::Rule rule_named(const char* name) {
  policy::Rule rule;
  rule.name = name;
  return rule;
}

class SiteEffects : public testing::Test {
 protected:
  /// What the rules make of `request_`; "" or the error.
  std::string apply(const std::vector<policy::Rule>& rules) {
    std::vector<policy::PlacedRule> placed;
    for (const policy::Rule& rule : rules) placed.push_back({"x.toml:1", rule});
    policy::Facts facts;
    facts.uid = "1000";
    policy::Outcome outcome = policy::evaluate(placed, facts);
    Context context{{}, identity_, Environment(), log_};
    auto done = apply_effects(context, outcome.effects, image_, outcome.verdicts, request_);
    verdicts_ = std::move(outcome.verdicts);
    return done.ok() ? "" : to_line(done.error());
  }
  /// The environment of the container but for what every one has.
  std::vector<std::string> environment() const {
    Environment inherited(request_.inherited);
    std::vector<std::string> entries = environment_of(request_);
    auto made = make_environment({image_.env, entries, inherited, "h", "/", false});
    if (!made.ok()) return {to_line(made.error())};
    std::erase_if(*made, [](const std::string& one) {
      return one.starts_with("PATH=") || one == "HOSTNAME=h" || one == "HOME=/";
    });
    return *made;
  }

  SiteWarnings log_;
  Identity identity_ = Identity::mapped;
  oci::ContainerDefaults image_;
  RunRequest request_;
  std::vector<policy::Verdict> verdicts_;
};

TEST_F(SiteEffects, variables_are_below_the_users_and_forced_ones_above) {
  image_.env = {"A=image", "B=image", "C=image", "D=image"};
  request_.environment = {"A=user", "E=user"};
  policy::Rule rule;
  rule.env = {{"A", "site"}, {"B", "site"}};
  rule.env_default = {{"C", "site"}, {"E", "site"}, {"F", "site"}};
  rule.env_force = {{"E", "forced"}};
  rule.env_unset = {"D"};
  EXPECT_EQ(apply({rule}), "");
  EXPECT_THAT(environment(),
              UnorderedElementsAre("A=user", "B=site", "C=image", "E=forced", "F=site"));
}

TEST_F(SiteEffects, a_mount_of_the_user_stays_where_none_is_forced) {
  request_.volumes = {Volume{.source = "/mine", .destination = "/data"}};
  policy::Rule rule = rule_named("site");
  rule.mounts = {"/theirs:/data:ro", "/scratch:/scratch"};
  EXPECT_EQ(apply({rule}), "");
  ASSERT_EQ(request_.volumes.size(), 2U);
  EXPECT_EQ(request_.volumes[0].source, "/mine");
  EXPECT_EQ(request_.volumes[1].source, "/scratch");
  EXPECT_TRUE(request_.volumes[1].must_exist);
  EXPECT_THAT(verdicts_[0].why, HasSubstr("another mount is at /data"));
  rule.force = true;
  EXPECT_EQ(apply({rule}), "");
  ASSERT_EQ(request_.volumes.size(), 2U);
  EXPECT_EQ(request_.volumes[0].source, "/theirs");
  EXPECT_TRUE(request_.volumes[0].read_only);
}

TEST_F(SiteEffects, a_later_mount_takes_the_place_of_an_earlier_one_of_the_site) {
  policy::Rule one, two;
  one.mounts = {"/one:/data"};
  two.mounts = {"/two:/data"};
  EXPECT_EQ(apply({one, two}), "");
  ASSERT_EQ(request_.volumes.size(), 1U);
  EXPECT_EQ(request_.volumes[0].source, "/two");
  request_.volumes.clear();
  one.force = true;
  EXPECT_EQ(apply({one, two}), "");
  EXPECT_EQ(request_.volumes[0].source, "/one");
}

TEST_F(SiteEffects, what_is_optional_and_missing_is_left_out_and_told) {
  policy::Rule rule = rule_named("gpu");
  rule.mounts = {"/nowhere/at/all:/x", "/:/host"};
  rule.devices = {"/dev/no-such-device", "/dev/null"};
  rule.optional = true;
  EXPECT_EQ(apply({rule}), "");
  ASSERT_EQ(request_.volumes.size(), 1U);
  EXPECT_EQ(request_.volumes[0].destination, "/host");
  ASSERT_EQ(request_.host_devices.size(), 1U);
  EXPECT_EQ(request_.host_devices[0].source, "/dev/null");
  EXPECT_EQ(verdicts_[0].why,
            "gives mounts, devices; left out: there is no /nowhere/at/all; left out: there is no "
            "/dev/no-such-device");
}

TEST_F(SiteEffects, flags_win_over_values_that_are_not_forced) {
  request_.user = "7";
  request_.network = Network::none;
  request_.network_asked = true;
  request_.gpus = "none";
  request_.limits.memory_bytes = 16 << 20;
  policy::Rule rule;
  rule.user = "0:0";
  rule.network = "host";
  rule.gpus = "all";
  rule.memory = "1g";
  rule.cpus = "2";
  EXPECT_EQ(apply({rule}), "");
  EXPECT_EQ(request_.user, "7");
  EXPECT_EQ(request_.network, Network::none);
  EXPECT_EQ(request_.gpus, "none");
  EXPECT_EQ(request_.limits.memory_bytes, 16U << 20);
  EXPECT_EQ(request_.limits.cpu_millis, 2000U);
  rule.force = true;
  EXPECT_EQ(apply({rule}), "");
  EXPECT_EQ(request_.user, "0:0");
  EXPECT_EQ(request_.network, Network::host);
  EXPECT_EQ(request_.gpus, "all");
}

TEST_F(SiteEffects, a_forced_limit_is_the_most) {
  policy::Rule rule;
  rule.memory = "32m";
  rule.pids_limit = 100;
  rule.force = true;
  request_.limits.memory_bytes = 64 << 20;
  request_.limits.pids = -1;
  EXPECT_EQ(apply({rule}), "");
  EXPECT_EQ(request_.limits.memory_bytes, 32U << 20);
  EXPECT_EQ(request_.limits.pids, 100);
  request_.limits.memory_bytes = 16 << 20;
  request_.limits.pids = 7;
  EXPECT_EQ(apply({rule}), "");
  EXPECT_EQ(request_.limits.memory_bytes, 16U << 20);
  EXPECT_EQ(request_.limits.pids, 7);
}

TEST_F(SiteEffects, the_callers_id_is_kept_for_who_is_not_root) {
  policy::Rule rule;
  rule.user = "caller";
  EXPECT_EQ(apply({rule}), "");
  EXPECT_EQ(request_.userns.kind, NamespaceMode::Kind::keep_id);
  identity_ = Identity::root;
  request_ = {};
  EXPECT_EQ(apply({rule}), "");
  EXPECT_EQ(request_.userns.kind, NamespaceMode::Kind::usual);
}

TEST_F(SiteEffects, a_variable_of_the_user_alone_may_name_user_and_gpus) {
  policy::Rule rule = rule_named("houdini");
  rule.user = "env:WHO";
  rule.gpus = "env:COUNT";
  image_.env = {"WHO=0", "COUNT=all"};
  EXPECT_EQ(apply({rule}), "");
  EXPECT_FALSE(request_.user || request_.gpus);
  request_.environment = {"WHO=5:5", "COUNT=2"};
  EXPECT_EQ(apply({rule}), "");
  EXPECT_EQ(request_.user, "5:5");
  EXPECT_EQ(request_.gpus, "2");
  request_ = {};
  request_.environment = {"COUNT=lots"};
  EXPECT_THAT(apply({rule}), HasSubstr("rule 'houdini': gpus 'env:COUNT': "));
}

TEST_F(SiteEffects, refuse_and_warn_in_the_sites_words) {
  policy::Rule rule = rule_named("no");
  rule.warn = "look\nout";
  EXPECT_EQ(apply({rule}), "");
  EXPECT_THAT(log_.texts, ElementsAre("the site says: look\\nout (rule 'no')"));
  rule.refuse = "ask us first";
  EXPECT_EQ(apply({rule}),
            "the site refuses this container: ask us first (rule 'no'); try: berth policy test "
            "IMAGE");
}

TEST(SiteRuleTexts, are_those_of_the_flags) {
  policy::Rule rule;
  rule.mounts = {"/a", "{home}:/root", "/scratch/{user}:/scratch", "/a:b", "/a:/b:fast"};
  rule.tmpfs = {"x"};
  rule.devices = {"/dev/fuse", "gpu"};
  rule.gpus = "lots";
  rule.network = "container:x";
  rule.memory = "much";
  rule.shm_size = "";
  rule.cpus = "none";
  rule.ulimits = {"files=1"};
  std::vector<std::string> keys;
  for (const policy::RuleFault& fault : check_texts(rule)) keys.push_back(fault.key);
  EXPECT_THAT(keys, ElementsAre("mounts", "mounts", "tmpfs", "devices", "gpus", "network", "memory",
                                "shm-size", "cpus", "ulimits"));
  rule = {};
  rule.gpus = "env:COUNT";
  EXPECT_THAT(check_texts(rule), IsEmpty());
  rule.memory = "1m";
  EXPECT_EQ(check_texts(rule).at(0).error.what, "'1m': Minimum memory limit allowed is 6MB");
}

}  // namespace
}  // namespace berth::engine
