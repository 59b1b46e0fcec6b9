// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "network/address.hpp"

namespace berth::network {
namespace {

Subnet subnet(const char* base, uint8_t prefix_length) {
  return {*parse_ipv4(base), prefix_length};
}

TEST(Ipv4, reads_and_writes_addresses) {
  EXPECT_EQ(parse_ipv4("10.0.0.1"), 0x0a000001U);
  EXPECT_EQ(text_of(*parse_ipv4("192.168.254.3")), "192.168.254.3");
  EXPECT_EQ(from_bytes(bytes_of(0x01020304)), 0x01020304U);
  for (const char* wrong :
       {"", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "a.b.c.d", "1..2.3"}) {
    EXPECT_EQ(parse_ipv4(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(from_bytes("123"), std::nullopt);
}

TEST(Subnets, overlap_none_of_the_hosts_routes) {
  std::vector<Subnet> taken = {subnet("0.0.0.0", 0), subnet("10.0.0.0", 8),
                               subnet("172.16.0.0", 12), subnet("192.168.64.0", 23)};
  EXPECT_EQ(choose_subnet({}, 0)->text(), "10.96.0.0/16");
  EXPECT_EQ(choose_subnet({taken[0]}, 0)->text(), "10.96.0.0/16");
  EXPECT_EQ(choose_subnet({subnet("10.96.3.0", 24)}, 0)->text(), "10.97.0.0/16");
  EXPECT_EQ(choose_subnet(taken, 0)->text(), "192.168.66.0/24");
  taken.push_back(subnet("192.168.0.0", 16));
  EXPECT_EQ(choose_subnet(taken, 0), std::nullopt);
  for (uint32_t turn = 0; turn < 100; ++turn) {
    EXPECT_EQ(choose_subnet(taken, turn), std::nullopt);
    EXPECT_TRUE(choose_subnet({}, turn));
  }
  EXPECT_NE(choose_subnet({}, 1), choose_subnet({}, 2));
}

TEST(Subnets, of_one_container_are_known_from_user_mode_networks) {
  EXPECT_EQ(choose_small_subnet({})->text(), "10.0.2.0/24");
  EXPECT_EQ(choose_small_subnet({subnet("10.0.0.0", 8)})->text(), "172.22.0.0/24");
}

TEST(Subnets, are_read_with_what_lies_beyond_the_prefix_as_zero) {
  EXPECT_EQ(parse_subnet("10.1.2.3/16")->text(), "10.1.0.0/16");
  EXPECT_EQ(parse_subnet("10.1.2.3/32")->text(), "10.1.2.3/32");
  EXPECT_EQ(parse_subnet("10.1.2.3/0")->text(), "0.0.0.0/0");
  for (const char* wrong : {"", "10.1.2.3", "10.1.2.3/", "10.1.2.3/33", "10.1.2/8", "/8",
                            "10.1.2.3/-1", "10.1.2.3/8/8", "10.1.2.3/8 "}) {
    EXPECT_EQ(parse_subnet(wrong), std::nullopt) << wrong;
  }
}

TEST(Subnets, of_named_networks_are_apart_from_all_others) {
  EXPECT_EQ(choose_named_subnet({})->text(), "10.128.0.0/20");
  EXPECT_EQ(choose_named_subnet({subnet("0.0.0.0", 0)})->text(), "10.128.0.0/20");
  EXPECT_EQ(choose_named_subnet({subnet("10.128.0.0", 20), subnet("10.128.17.0", 24)})->text(),
            "10.128.32.0/20");
  EXPECT_EQ(choose_named_subnet({subnet("10.128.0.0", 10)}), std::nullopt);
  // None of the bridge without a name lies there.
  for (uint32_t turn = 0; turn < 300; ++turn) {
    EXPECT_FALSE(choose_subnet({}, turn)->overlaps(subnet("10.128.0.0", 10))) << turn;
  }
}

TEST(Addresses, are_the_lowest_free_ones) {
  Subnet small = subnet("10.9.8.0", 29);  // .1 is the gateway, .7 for all
  std::vector<Ipv4> taken;
  for (const char* expected : {"10.9.8.2", "10.9.8.3", "10.9.8.4", "10.9.8.5", "10.9.8.6"}) {
    auto address = choose_address(small, small, taken);
    ASSERT_TRUE(address);
    EXPECT_EQ(text_of(*address), expected);
    taken.push_back(*address);
  }
  EXPECT_EQ(choose_address(small, small, taken), std::nullopt);
  taken.erase(taken.begin() + 1);
  EXPECT_EQ(text_of(*choose_address(small, small, taken)), "10.9.8.3");
  EXPECT_EQ(choose_address(small, subnet("10.9.8.4", 30), taken), std::nullopt);
  EXPECT_EQ(text_of(*choose_address(small, subnet("10.9.8.4", 30), {})), "10.9.8.4");
  EXPECT_EQ(choose_address(small, subnet("10.9.8.0", 31), {}), std::nullopt);  // the gateway's
}

}  // namespace
}  // namespace berth::network
