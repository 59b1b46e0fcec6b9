// SPDX-License-Identifier: Apache-2.0
#include "sys/net/link.hpp"

#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace berth::sys {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string attribute(uint16_t type, std::string value) {
  rtattr head{};
  head.rta_type = type;
  head.rta_len = static_cast<uint16_t>(RTA_LENGTH(value.size()));
  value.resize(RTA_ALIGN(value.size()));
  return bytes_of(head) + value;
}

std::string message(ifaddrmsg info, const std::string& attributes) {
  nlmsghdr head{};
  head.nlmsg_type = RTM_NEWADDR;
  head.nlmsg_len = static_cast<uint32_t>(sizeof head + sizeof info + attributes.size());
  return bytes_of(head) + bytes_of(info) + attributes;
}

ifaddrmsg global(uint32_t index) {
  ifaddrmsg info{};
  info.ifa_family = AF_INET;
  info.ifa_prefixlen = 24;
  info.ifa_flags = IFA_F_PERMANENT;
  info.ifa_index = index;
  return info;
}

const std::string kLocal = {10, 1, 2, 3};
const std::string kOther = {10, 1, 2, 4};

TEST(NetLinks, read_the_permanent_global_addresses_of_one_interface) {
  std::string own =
      message(global(7), attribute(IFA_LOCAL, kLocal) + attribute(IFA_ADDRESS, kOther) +
                             attribute(IFA_BROADCAST, kOther));
  std::string others = message(global(8), attribute(IFA_LOCAL, kLocal));
  ifaddrmsg link = global(7);
  link.ifa_scope = RT_SCOPE_LINK;
  ifaddrmsg passing = global(7);
  passing.ifa_flags = 0;
  std::string more =
      message(link, attribute(IFA_LOCAL, kLocal)) + message(passing, attribute(IFA_LOCAL, kLocal));
  EXPECT_EQ(parse_addresses(others + own + more, 7),
            (std::vector<LinkAddress>{{AF_INET, 24, kLocal, kOther, kOther}}));
}

TEST(NetLinks, take_the_flags_of_the_longer_field) {
  ifaddrmsg info = global(7);
  info.ifa_flags = 0;
  uint32_t flags = IFA_F_PERMANENT;
  std::string attributes = attribute(IFA_LOCAL, kLocal) + attribute(IFA_FLAGS, bytes_of(flags));
  EXPECT_EQ(parse_addresses(message(info, attributes), 7).size(), 1u);
}

TEST(NetLinks, stop_at_a_length_that_does_not_fit) {
  std::string whole = message(global(7), attribute(IFA_LOCAL, kLocal));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(parse_addresses(whole.substr(0, size), 7).empty()) << size;
  }
  for (uint32_t length : {0U, 1U, 15U, 0xffffffffU}) {
    std::string wrong = whole;
    wrong.replace(0, sizeof length, bytes_of(length));
    EXPECT_TRUE(parse_addresses(wrong, 7).empty()) << length;
  }
  for (uint16_t length : {uint16_t{0}, uint16_t{3}, uint16_t{0xffff}}) {
    std::string wrong = whole;
    wrong.replace(sizeof(nlmsghdr) + sizeof(ifaddrmsg), sizeof length, bytes_of(length));
    EXPECT_TRUE(parse_addresses(wrong, 7).empty()) << length;
  }
  EXPECT_TRUE(parse_addresses(message(global(7), attribute(IFA_LOCAL, "abc")), 7).empty());
}

std::string route(uint8_t family, uint8_t type, uint8_t prefix_length,
                  const std::string& attributes) {
  rtmsg info{};
  info.rtm_family = family;
  info.rtm_type = type;
  info.rtm_dst_len = prefix_length;
  nlmsghdr head{};
  head.nlmsg_type = RTM_NEWROUTE;
  head.nlmsg_len = static_cast<uint32_t>(sizeof head + sizeof info + attributes.size());
  return bytes_of(head) + bytes_of(info) + attributes;
}

TEST(NetLinks, read_the_routes_to_other_machines) {
  std::string device = attribute(RTA_OIF, bytes_of(uint32_t{3}));
  std::string away = route(AF_INET, RTN_UNICAST, 24, attribute(RTA_DST, kLocal) + device);
  std::string rest = route(AF_INET, RTN_UNICAST, 0, device);
  std::string hole = route(AF_INET, RTN_BLACKHOLE, 8, attribute(RTA_DST, kOther));
  std::string own = route(AF_INET, RTN_LOCAL, 32, attribute(RTA_DST, kLocal) + device);
  const std::string six(16, '\x26');
  std::string other = route(AF_INET6, RTN_UNICAST, 64, attribute(RTA_DST, six) + device);
  std::string short_one = route(AF_INET6, RTN_UNICAST, 64, attribute(RTA_DST, kLocal) + device);
  EXPECT_EQ(parse_routes(own + away + other + short_one + rest + hole),
            (std::vector<Route>{{kLocal, 24, 3},
                                {six, 64, 3},
                                {std::string(16, '\0'), 64, 3},
                                {std::string(4, '\0'), 0, 3},
                                {kOther, 8, 0, true}}));
  for (size_t size = 0; size < away.size(); ++size) {
    EXPECT_TRUE(parse_routes(away.substr(0, size)).empty()) << size;
  }
}

TEST(NetLinks, read_the_names_of_interfaces) {
  ifinfomsg info{};
  info.ifi_index = 5;
  std::string attributes = attribute(IFLA_IFNAME, std::string("eth0\0", 5));
  nlmsghdr head{};
  head.nlmsg_type = RTM_NEWLINK;
  head.nlmsg_len = static_cast<uint32_t>(sizeof head + sizeof info + attributes.size());
  std::string whole = bytes_of(head) + bytes_of(info) + attributes;
  EXPECT_EQ(parse_links(whole + whole), (std::vector<LinkName>{{5, "eth0"}, {5, "eth0"}}));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(parse_links(whole.substr(0, size)).empty()) << size;
  }
}

}  // namespace
}  // namespace berth::sys
