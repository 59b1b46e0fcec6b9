// SPDX-License-Identifier: Apache-2.0
#include "hub/config/address.hpp"

#include <gtest/gtest.h>

namespace berth::hub {
namespace {

Address at(std::string_view text) {
  auto address = parse_address(text);
  EXPECT_TRUE(address.has_value()) << text;
  return address.value_or(Address{});
}

bool contains(std::string_view network, std::string_view address) {
  auto parsed = parse_network(network);
  EXPECT_TRUE(parsed.ok()) << network;
  return parsed.ok() && parsed->contains(at(address));
}

TEST(Address, reads_both_kinds_and_nothing_else) {
  EXPECT_EQ(at("10.0.0.1"), at("::ffff:10.0.0.1"));
  EXPECT_NE(at("::1"), at("127.0.0.1"));
  for (std::string_view text : {"", "10.0.0", "10.0.0.256", "10.0.0.1 ", "host", "fe80::1%eth0",
                                "1:2:3:4:5:6:7:8:9", "0x7f.1", "010.0.0.1.2"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
  EXPECT_FALSE(parse_address(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(parse_address(std::string(5000, '1')));
}

TEST(Address, knows_loopback) {
  EXPECT_TRUE(is_loopback(at("127.0.0.1")));
  EXPECT_TRUE(is_loopback(at("127.9.9.9")));
  EXPECT_TRUE(is_loopback(at("::1")));
  EXPECT_TRUE(is_loopback(at("::ffff:127.0.0.1")));
  EXPECT_FALSE(is_loopback(at("128.0.0.1")));
  EXPECT_FALSE(is_loopback(at("::2")));
}

TEST(Address, has_a_neighbourhood_of_64_bits_or_itself) {
  EXPECT_EQ(neighbourhood(*parse_address("10.0.0.7")), *parse_address("10.0.0.7"));
  EXPECT_EQ(neighbourhood(*parse_address("::ffff:10.0.0.7")), *parse_address("10.0.0.7"));
  EXPECT_EQ(neighbourhood(*parse_address("fd00:1:2:3:4:5:6:7")), *parse_address("fd00:1:2:3::"));
  EXPECT_EQ(neighbourhood(*parse_address("::1")), *parse_address("::"));
}

TEST(Network, has_the_addresses_of_its_bits) {
  EXPECT_TRUE(contains("10.1.0.0/16", "10.1.255.255"));
  EXPECT_FALSE(contains("10.1.0.0/16", "10.2.0.0"));
  EXPECT_TRUE(contains("10.1.0.0/16", "::ffff:10.1.2.3"));
  EXPECT_TRUE(contains("10.0.0.128/25", "10.0.0.200"));
  EXPECT_FALSE(contains("10.0.0.128/25", "10.0.0.127"));
  EXPECT_TRUE(contains("0.0.0.0/0", "255.1.2.3"));
  EXPECT_FALSE(contains("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(contains("::/0", "1.2.3.4"));
  EXPECT_TRUE(contains("fd00::/8", "fdff::1"));
  EXPECT_FALSE(contains("fd00::/8", "fe00::1"));
  EXPECT_TRUE(contains("10.0.0.7", "10.0.0.7"));
  EXPECT_FALSE(contains("10.0.0.7", "10.0.0.6"));
}

TEST(Network, refuses_what_is_none) {
  for (std::string_view text : {"", "/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8",
                                "10.0.0.0/a", "fd00::/129", "nodes", "10.0.0.1/8", "fd00::1/8"}) {
    auto network = parse_network(text);
    ASSERT_FALSE(network.ok()) << text;
    EXPECT_EQ(network.error().kind, Kind::usage);
  }
  EXPECT_NE(parse_network("10.0.0.1/8").error().what.find("behind its length"), std::string::npos);
}

TEST(Endpoint, is_an_address_with_a_port) {
  auto four = parse_endpoint("127.0.0.1:5050");
  ASSERT_TRUE(four.ok());
  EXPECT_EQ(four->host, "127.0.0.1");
  EXPECT_EQ(four->port, 5050);
  EXPECT_TRUE(four->loopback);
  auto six = parse_endpoint("[fd00::1]:0");
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(six->host, "fd00::1");
  EXPECT_FALSE(six->loopback);
  for (std::string_view text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:5050",
                                "[127.0.0.1]:5050", "localhost:5050", "[::1]", "127.0.0.1:-1"}) {
    EXPECT_FALSE(parse_endpoint(text).ok()) << text;
  }
}

}  // namespace
}  // namespace berth::hub
