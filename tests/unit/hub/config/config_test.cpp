// SPDX-License-Identifier: Apache-2.0
#include "hub/config/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/fields.hpp"

namespace berth::hub {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kWhole = R"(
listen = ["127.0.0.1:5050", "[::1]:5050"]
tls-certificate = "cert.pem"
tls-key = "key.pem"
htpasswd = "htpasswd"
fleet = "nodes"
default = "plain"
user-land = "image"
blobs = "redirect"
log = "json"

[[upstream]]
prefix = "hub"
registry = "docker.io"
repositories = ["library/*"]

[[login]]
name = "metahub-c59xl-ht"
profile = "c5"

[[address]]
network = "10.1.0.0/16"
profile = "k80"

[access]
insecure-registries = ["registry.example.org"]

[limits]
transfers = 8
)";

Config valid() {
  Config config;
  config.upstream = {{"", "registry.example.org", {"*"}}};
  return config;
}

std::string fault_of(const Config& config) {
  auto checked = check(config);
  return checked.ok() ? "" : to_line(checked.error());
}

TEST(HubConfig, is_read_and_survives_json) {
  auto config = read_config(kWhole, "hub.toml");
  ASSERT_TRUE(config.ok()) << to_line(config.error());
  EXPECT_TRUE(check(*config).ok()) << fault_of(*config);
  auto again = json::read<Config>(json::write(*config), "json");
  ASSERT_TRUE(again.ok()) << to_line(again.error());
  EXPECT_EQ(json::write(*again), json::write(*config));
  EXPECT_EQ(again->blobs, Blobs::redirect);
  EXPECT_EQ(again->user_land, match::UserLand::image);
  EXPECT_EQ(again->limits.transfers, 8u);
  EXPECT_EQ(again->limits.connections, 512u);
  EXPECT_EQ(again->address.front().network, "10.1.0.0/16");
}

TEST(HubConfig, wrong_words_have_their_line_and_the_nearest) {
  auto fault = [](std::string_view text) {
    auto config = read_config(text, "hub.toml");
    return config.ok() ? std::string() : to_line(config.error());
  };
  EXPECT_EQ(fault("\nlisten-at = [\"127.0.0.1:1\"]\n"),
            "hub.toml:2: listen-at: unknown key; did you mean 'listen'?");
  EXPECT_THAT(fault("[[upstream]]\nregistri = \"x\"\n"), HasSubstr("upstream[0]"));
  EXPECT_THAT(fault("blobs = \"through\"\n"), HasSubstr("expected one of pass, redirect"));
  EXPECT_THAT(fault("listen = \"127.0.0.1:1\"\n"), HasSubstr("expected an array"));
  EXPECT_THAT(fault("[limits]\ntransfers = -1\n"), HasSubstr("out of range"));
  EXPECT_THAT(fault("listen = ["), HasSubstr("hub.toml:1"));
}

TEST(HubConfig, an_upstream_says_what_is_served) {
  EXPECT_THAT(fault_of(Config{}), HasSubstr("no registry is given"));
  Config config = valid();
  EXPECT_EQ(fault_of(config), "");
  config.upstream[0].repositories = {};
  EXPECT_THAT(fault_of(config), HasSubstr("upstream[0].repositories: nothing is served"));
  for (const char* pattern :
       {"", "/", "team/", "*/app", "app*", "Team", "../x", "team//x", "team/**"}) {
    config.upstream[0].repositories = {pattern};
    EXPECT_NE(fault_of(config), "") << pattern;
  }
  for (const char* pattern : {"*", "team", "team/*", "team/sub/*", "a__b-c.d/app"}) {
    config.upstream[0].repositories = {pattern};
    EXPECT_EQ(fault_of(config), "") << pattern;
  }
  config.upstream.push_back(config.upstream[0]);
  EXPECT_THAT(fault_of(config), HasSubstr("is also that of another upstream"));
  config = valid();
  config.upstream[0].registry = "https://registry.example.org";
  EXPECT_THAT(fault_of(config), HasSubstr("expected HOST"));
}

TEST(HubConfig, passwords_do_not_come_in_plain_from_other_machines) {
  Config config = valid();
  config.htpasswd = "htpasswd";
  config.listen = {"127.0.0.1:5050"};
  EXPECT_EQ(fault_of(config), "");
  config.listen.emplace_back("10.0.0.1:5050");
  EXPECT_THAT(fault_of(config), HasSubstr("passwords would come in plain HTTP"));
  config.plain_passwords = true;
  EXPECT_EQ(fault_of(config), "");
  config.plain_passwords = false;
  config.tls_certificate = "cert.pem";
  EXPECT_THAT(fault_of(config), HasSubstr("tls-key: missing"));
  config.tls_key = "key.pem";
  EXPECT_EQ(fault_of(config), "");
}

TEST(HubConfig, refuses_tables_that_contradict_themselves) {
  Config config = valid();
  config.usual = "plain";
  EXPECT_THAT(fault_of(config), HasSubstr("fleet: missing"));
  config.fleet = "nodes";
  config.login = {{"a", "x"}, {"a", "y"}};
  EXPECT_THAT(fault_of(config), HasSubstr("is given twice"));
  config.login.clear();
  config.address = {{"10.0.0.0/99", "x"}};
  EXPECT_THAT(fault_of(config), HasSubstr("its length is 0 to 32"));
  config.address.clear();
  config.limits.connections_per_address = 10'001;
  EXPECT_THAT(fault_of(config), HasSubstr("limits.connections-per-address: expected 0 to 10000"));
  config.limits.connections_per_address.reset();
  config.limits.connections = 0;
  EXPECT_THAT(fault_of(config), HasSubstr("limits.connections: expected 1 to"));
}

TEST(HubConfig, a_pattern_has_what_is_below_it) {
  Upstream upstream{"", "r", {"team/*", "one/app"}};
  EXPECT_TRUE(serves(upstream, "team/app"));
  EXPECT_TRUE(serves(upstream, "team/a/b"));
  EXPECT_TRUE(serves(upstream, "one/app"));
  for (const char* name : {"team", "team/", "teams/app", "one/app2", "one", "x/team/app"}) {
    EXPECT_FALSE(serves(upstream, name)) << name;
  }
}

TEST(HubConfig, an_address_has_a_quarter_of_all_connections_unless_told) {
  Limits limits;
  EXPECT_EQ(connections_per_address(limits), 128u);
  limits.connections = 3;
  EXPECT_EQ(connections_per_address(limits), 1u);
  limits.connections_per_address = 0;
  EXPECT_EQ(connections_per_address(limits), 3u) << "no limit of its own";
  auto read = read_config("[limits]\nconnections-per-address = 7\n", "hub.toml");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(connections_per_address(read->limits), 7u);
}

}  // namespace
}  // namespace berth::hub
