// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "network/address.hpp"

namespace berth::network {
namespace {

Prefix prefix(const char* base, uint8_t length) {
  return {parse_ipv6(base).value_or(""), length};
}

std::string chosen(const std::vector<Prefix>& taken) {
  auto found = choose_prefix(taken);
  return found ? text_of_ipv6(found->base) + "/" + std::to_string(found->length) : "none";
}

TEST(Ipv6, is_read_and_written_in_the_short_form) {
  EXPECT_EQ(text_of_ipv6(*parse_ipv6("FD00:0:0:0:0::0100")), "fd00::100");
  for (const char* text : {"", "::1%lo", "10.0.0.1", "fd00::1/64", "fd00:::1", "[::1]", "1:2"}) {
    EXPECT_FALSE(parse_ipv6(text)) << text;
  }
  EXPECT_FALSE(parse_ipv6(std::string_view("::1\0", 4)));
  EXPECT_EQ(text_of_ipv6("four"), "");
  EXPECT_EQ(*mapped_ipv4(*parse_ipv6("::ffff:10.0.0.1")), std::string_view("\x0a\0\0\x01", 4));
  EXPECT_FALSE(mapped_ipv4(*parse_ipv6("::10.0.0.1")));
}

TEST(Ipv6, has_brackets_before_a_port) {
  EXPECT_EQ(with_port("::1", 80), "[::1]:80");
  EXPECT_EQ(with_port("0.0.0.0", 80), "0.0.0.0:80");
}

TEST(Ipv6, a_prefix_contains_what_begins_with_its_bits) {
  EXPECT_TRUE(prefix("fd00::", 8).contains(*parse_ipv6("fdff::1")));
  EXPECT_FALSE(prefix("fd00::", 8).contains(*parse_ipv6("fe00::1")));
  EXPECT_TRUE(prefix("fd00:0:0:8::", 61).contains(*parse_ipv6("fd00:0:0:f::1")));
  EXPECT_FALSE(prefix("fd00:0:0:8::", 61).contains(*parse_ipv6("fd00:0:0:10::1")));
  EXPECT_TRUE(prefix("::", 0).contains(*parse_ipv6("fe80::1")));
  EXPECT_FALSE(prefix("::", 0).contains("four"));
}

TEST(Ipv6, a_prefix_is_chosen_that_no_route_has) {
  EXPECT_EQ(chosen({}), "fd00::/64");
  EXPECT_EQ(chosen({prefix("::", 0), prefix("2001:db8::", 32)}), "fd00::/64");
  EXPECT_EQ(chosen({prefix("fd00::", 64)}), "fd00:0:0:1::/64");
  EXPECT_EQ(chosen({prefix("fd00::7", 128), prefix("fd00:0:0:1::", 64)}), "fd00:0:0:2::/64");
  EXPECT_EQ(chosen({prefix("fd00::", 61)}), "fd00:0:0:8::/64");
  EXPECT_EQ(chosen({prefix("fc00::", 7)}), "none");
}

TEST(Ipv6, an_address_has_its_number_at_the_end) {
  EXPECT_EQ(text_of_ipv6(address_in(prefix("fd00::", 64), 0x100)), "fd00::100");
}

}  // namespace
}  // namespace berth::network
