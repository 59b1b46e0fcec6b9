// SPDX-License-Identifier: Apache-2.0
#include "network/rules.hpp"

#include <gtest/gtest.h>

namespace berth::network {
namespace {

constexpr const char* kDocker = R"(table ip filter {
	chain DOCKER-USER {
		counter packets 0 bytes 0 return
	}

	chain FORWARD {
		type filter hook forward priority filter; policy drop;
		counter packets 0 bytes 0 jump DOCKER-USER # handle 9
%s	}
}
table ip6 filter {
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
	}
}
table ip berth0 {
	chain passing {
		type filter hook forward priority filter; policy accept;
		oifname "berth0" accept # handle 3
	}
}
table inet site {
	chain pass {
		type filter hook forward priority filter; policy accept;
	}
	chain in {
		type filter hook input priority filter; policy drop;
	}
}
)";

std::string docker_with(const std::string& rules) {
  std::string text = kDocker;
  return text.replace(text.find("%s"), 2, rules);
}

TEST(ForwardChains, are_those_of_others_that_ipv4_passes) {
  std::string from = "\t\tiifname \"berth0\" counter packets 0 bytes 0 accept # handle 12\n";
  std::string to = "\t\toifname \"berth0\" accept # handle 13\n";
  std::vector<ForwardChain> expected = {{"ip filter FORWARD", true, true, true, {"12", "13"}},
                                        {"inet site pass", false, false, false, {}}};
  EXPECT_EQ(forward_chains(docker_with(from + to), "berth0"), expected);
  EXPECT_EQ(forward_chains("", "berth0"), std::vector<ForwardChain>());
  EXPECT_EQ(forward_chains("table\nchain\n policy drop hook forward\n}", "berth0"),
            std::vector<ForwardChain>());
  expected[0] = {"ip filter FORWARD", true, false, false, {}};
  for (const char* other : {"\t\tiifname \"berth01\" accept # handle 1\n",
                            "\t\tip saddr 10.0.0.0/8 accept # handle 1\n",
                            "\t\tiifname \"berth0\" ip daddr 10.0.0.1 accept # handle 1\n",
                            "\t\tiifname \"berth0\" counter packets 0 bytes 0 drop # handle 1\n",
                            "accept # handle 1\n"}) {
    EXPECT_EQ(forward_chains(docker_with(other), "berth0"), expected) << other;
  }
}

TEST(ForwardChains, let_the_bridge_pass_at_their_end_and_only_where_they_drop) {
  auto chains = forward_chains(docker_with(""), "berth0");
  EXPECT_EQ(let_pass(chains, "berth0"),
            "add rule ip filter FORWARD iifname \"berth0\" counter accept\n"
            "add rule ip filter FORWARD oifname \"berth0\" counter accept\n");
  EXPECT_EQ(stop_passing(chains), "");
  chains[0].accepts_from = chains[0].accepts_to = true;
  chains[0].handles = {"12", "13"};
  EXPECT_EQ(let_pass(chains, "berth0"), "");
  EXPECT_EQ(stop_passing(chains),
            "delete rule ip filter FORWARD handle 12\ndelete rule ip filter FORWARD handle 13\n");
}

RuleInputs inputs_with(std::vector<Published> ports) {
  Lease lease;
  lease.id = "x\" ; flush ruleset ; \"";  // what a container is called is in no rule
  lease.mode = kBridge;
  lease.address = "10.96.0.2";
  lease.mac = "02:be:0a:60:00:02";
  lease.interface = "bv0.2";
  lease.ports = std::move(ports);
  return {{"berth0", "bv0."}, {0x0a600000, 16}, {lease}, {}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

TEST(Rules, publish_ports_of_all_addresses_and_of_one) {
  auto rules = make_rules(inputs_with(
      {{"0.0.0.0", 8080, 80, "tcp"}, {"127.0.0.1", 8081, 81, "tcp"}, {"0.0.0.0", 53, 53, "udp"}}));
  ASSERT_TRUE(rules.ok());
  EXPECT_TRUE(has(*rules,
                  "map tcp_any { type inet_service : ipv4_addr . inet_service; "
                  "elements = { 8080 : 10.96.0.2 . 80 }; }"));
  EXPECT_TRUE(has(*rules,
                  "map tcp_at { type ipv4_addr . inet_service : ipv4_addr . inet_service; "
                  "elements = { 127.0.0.1 . 8081 : 10.96.0.2 . 81 }; }"));
  EXPECT_TRUE(has(*rules, "elements = { 53 : 10.96.0.2 . 53 }; }"));
  EXPECT_TRUE(
      has(*rules, "map udp_at { type ipv4_addr . inet_service : ipv4_addr . inet_service; }"));
}

TEST(Rules, touch_no_table_but_ours) {
  std::string all = *make_rules(inputs_with({})) + *make_bridge_rules(inputs_with({})) +
                    drop_rules({"berth0", "bv0."}) + drop_bridge_rules({"berth0", "bv0."});
  EXPECT_FALSE(has(all, "flush"));
  for (size_t at = all.find("table "); at != all.npos; at = all.find("table ", at + 1)) {
    std::string name =
        all.substr(at + 6, all.find_first_of(" \n", all.find(' ', at + 6) + 1) - at - 6);
    EXPECT_TRUE(name == "ip berth0" || name == "bridge berth0") << name;
  }
}

TEST(Rules, hold_nothing_that_could_end_a_word) {
  auto wrong = inputs_with({});
  wrong.leases[0].address = "10.96.0.2 }; flush ruleset";
  EXPECT_EQ(make_rules(wrong).error().kind, Kind::bug);
  wrong = inputs_with({});
  wrong.leases[0].interface = "x\" accept \"";
  EXPECT_EQ(make_bridge_rules(wrong).error().kind, Kind::bug);
  wrong = inputs_with({{"0.0.0.0", 80, 80, "tcp; accept"}});
  EXPECT_EQ(make_rules(wrong).error().kind, Kind::bug);
  wrong = inputs_with({{"0.0.0.0/0", 80, 80, "tcp"}});
  EXPECT_EQ(make_rules(wrong).error().kind, Kind::bug);
  wrong = inputs_with({});
  wrong.forwarded = {"eth0\" accept \""};
  EXPECT_EQ(make_rules(wrong).error().kind, Kind::bug);
  EXPECT_FALSE(has(*make_rules(inputs_with({})), "flush"));
}

TEST(Rules, make_no_router_of_an_interface_that_was_none) {
  auto inputs = inputs_with({});
  EXPECT_FALSE(has(*make_rules(inputs), "eth0"));
  inputs.forwarded = {"eth0"};
  EXPECT_TRUE(has(*make_rules(inputs), "iifname \"eth0\" oifname != \"berth*\" drop"));
}

TEST(Names, are_short_words_whatever_the_directory_is_called) {
  EXPECT_EQ(names_for("/run/berth/network").bridge, "berth0");
  for (const char* path : {"/tmp/x; accept", "/tmp/y", "", "/\xff"}) {
    InterfaceNames names = names_for(path);
    EXPECT_EQ(names.bridge.size(), 11U);
    EXPECT_EQ(names.bridge.find_first_not_of("bertho0123456789abcdef"), std::string::npos);
    EXPECT_LE(names.port_prefix.size() + 5, 15U);
  }
  EXPECT_NE(names_for("/a").bridge, names_for("/b").bridge);
}

}  // namespace
}  // namespace berth::network
