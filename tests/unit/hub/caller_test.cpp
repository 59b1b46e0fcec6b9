// SPDX-License-Identifier: Apache-2.0
#include "hub/caller.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "transfer/work/base64.hpp"

namespace berth::hub {
namespace {

using ::testing::HasSubstr;

std::string basic(const std::string& text) {
  return "Basic " + transfer::base64_encode(text);
}

bool nobody(std::string_view) {
  return false;
}

node::Profile profile(const std::string& name) {
  node::Profile out;
  out.name = name;
  out.architecture = "amd64";
  return out;
}

Nodes make_nodes(Config config) {
  auto nodes =
      Nodes::make(config, {profile("k80"), profile("c5"), profile("plain"), profile("alice")});
  EXPECT_TRUE(nodes.ok()) << to_line(nodes.error());
  return std::move(*nodes);
}

Nodes::Caller caller(const std::string& login, const std::string& header = "",
                     std::string_view address = "192.0.2.1") {
  Nodes::Caller out;
  out.header = header;
  if (!login.empty()) {
    out.login = login;
    out.name = read_login_name(login, nobody);
  }
  out.address = *parse_address(address);
  return out;
}

std::string name_of(const Nodes& nodes, const Nodes::Caller& who) {
  auto node = nodes.node_of(who);
  if (!node.ok()) return "error: " + to_line(node.error());
  return *node ? (*node)->name : "";
}

TEST(HubLogin, is_read_from_basic_alone) {
  auto login = read_basic(basic("alice:se:cret"));
  ASSERT_TRUE(login);
  EXPECT_EQ(login->name, "alice");
  EXPECT_EQ(login->password, "se:cret");
  EXPECT_TRUE(read_basic("bASIC  " + transfer::base64_encode("a:")));
  for (const std::string& value :
       {std::string(), std::string("Basic"), std::string("Basic "), std::string("Basic ???"),
        std::string("Bearer abc"), basic("no colon"), basic(":word"), basic("a\nb:c"),
        basic(std::string("a:b\0c", 5)), "Basic" + transfer::base64_encode("a:b")}) {
    EXPECT_FALSE(read_basic(value)) << value;
  }
}

TEST(HubLogin, any_bytes_are_read_or_refused) {
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (size_t size = random() % 24; size > 0; --size) bytes += static_cast<char>(random());
    for (const std::string& value : {bytes, "Basic " + bytes, basic(bytes)}) {
      auto login = read_basic(value);
      if (!login) continue;
      EXPECT_FALSE(login->name.empty());
      EXPECT_EQ(login->name.find_first_of(std::string_view("\0\r\n", 3)), std::string::npos);
      LoginName name = read_login_name(login->name, nobody);
      EXPECT_TRUE(name.profile.empty() || name.axes.empty());
    }
  }
}

TEST(HubLogin, a_name_may_say_more_than_who_it_is) {
  LoginName plus = read_login_name("alice+k80", nobody);
  EXPECT_EQ(plus.account, "alice");
  EXPECT_EQ(plus.profile, "k80");
  LoginName axes = read_login_name("meta/cpu#zen2,gpu#sm_90", nobody);
  EXPECT_EQ(axes.account, "meta");
  EXPECT_EQ(axes.axes, "cpu=zen2 gpu=sm_90");
  LoginName whole = read_login_name("a+b", [](std::string_view name) { return name == "a+b"; });
  EXPECT_EQ(whole.account, "a+b");
  EXPECT_EQ(whole.profile, "");
}

TEST(HubNode, header_comes_before_login_before_address_before_default) {
  Config config;
  config.usual = "plain";
  config.login = {{"metahub-c59xl-ht", "c5"}};
  config.address = {{"10.0.0.0/8", "plain"}, {"10.1.0.0/16", "k80"}, {"10.0.0.0/9", "c5"}};
  Nodes nodes = make_nodes(config);
  EXPECT_EQ(name_of(nodes, caller("")), "plain");
  EXPECT_EQ(name_of(nodes, caller("", "", "10.1.2.3")), "k80");
  EXPECT_EQ(name_of(nodes, caller("", "", "10.2.2.3")), "c5");
  EXPECT_EQ(name_of(nodes, caller("", "", "10.200.0.1")), "plain");
  EXPECT_EQ(name_of(nodes, caller("metahub-c59xl-ht", "", "10.1.2.3")), "c5");
  EXPECT_EQ(name_of(nodes, caller("bob+c5", "", "10.1.2.3")), "c5");
  EXPECT_EQ(name_of(nodes, caller("alice", "", "10.1.2.3")), "alice");
  EXPECT_EQ(name_of(nodes, caller("bob", "", "10.1.2.3")), "k80");
  EXPECT_EQ(name_of(nodes, caller("bob+c5", "k80")), "k80");
}

TEST(HubNode, none_is_none_without_a_default) {
  Nodes nodes = make_nodes({});
  EXPECT_EQ(name_of(nodes, caller("")), "");
  EXPECT_EQ(name_of(nodes, caller("bob")), "");
}

TEST(HubNode, what_is_named_and_not_there_is_refused) {
  Nodes nodes = make_nodes({});
  EXPECT_EQ(name_of(nodes, caller("", "k81")),
            "error: Berth-Node: no profile 'k81'; did you mean 'k80'?");
  EXPECT_EQ(name_of(nodes, caller("bob+zzzzzz")), "error: login: no profile 'zzzzzz'");
  EXPECT_THAT(name_of(nodes, caller("meta/cpu#brodwell")), HasSubstr("did you mean 'broadwell'"));
  EXPECT_THAT(name_of(nodes, caller("meta/cp#zen2")), HasSubstr("did you mean 'cpu'"));
  EXPECT_THAT(name_of(nodes, caller("meta/x")), HasSubstr("'x'"));
  EXPECT_LT(name_of(nodes, caller("", std::string(5000, 'x'))).size(), 300u);
}

TEST(HubNode, metahubs_names_make_a_node_of_their_own) {
  Config config;
  config.usual = "plain";
  Nodes nodes = make_nodes(config);
  auto node = nodes.node_of(caller("meta/cpu#zen2,gpu#sm_90"));
  ASSERT_TRUE(node.ok()) << to_line(node.error());
  EXPECT_EQ((*node)->cpu.microarchitecture, "zen2");
  EXPECT_EQ((*node)->architecture, "amd64");
  EXPECT_EQ((*node)->name, "/cpu=zen2 gpu=sm_90");
  ASSERT_EQ((*node)->gpus.size(), 1u);
  EXPECT_EQ((*node)->gpus[0].compute_capability, "9.0");
}

TEST(HubNode, tables_name_profiles_that_are_there) {
  Config config;
  config.address = {{"10.0.0.0/8", "k81"}};
  auto nodes = Nodes::make(config, {profile("k80")});
  ASSERT_FALSE(nodes.ok());
  EXPECT_EQ(to_line(nodes.error()), "address: no profile 'k81'; did you mean 'k80'?");
  config = {};
  config.usual = "x";
  EXPECT_FALSE(Nodes::make(config, {}).ok());
}

}  // namespace
}  // namespace berth::hub
