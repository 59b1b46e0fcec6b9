// SPDX-License-Identifier: Apache-2.0
#include "network/name_files.hpp"

#include <gtest/gtest.h>

#include "network/request.hpp"

namespace berth::network {
namespace {

using Words = std::vector<std::string>;

TEST(Resolver, leaves_out_what_a_container_of_ipv6_alone_cannot_reach) {
  EXPECT_EQ(reachable_by_ipv6({"10.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "2001:db8::53"}),
            (std::vector<std::string>{"2001:db8::53"}));
}

TEST(Resolver, leaves_out_what_a_container_cannot_reach) {
  EXPECT_EQ(nameservers_of("# x\nnameserver 127.0.0.53\nnameserver\t10.0.0.1\noptions ndots:2\n"),
            (Words{"127.0.0.53", "10.0.0.1"}));
  EXPECT_EQ(reachable({"127.0.0.53", "10.0.0.1", "::1", "fe80::1%eth0", "0.0.0.0", "x"}),
            (Words{"10.0.0.1"}));
}

TEST(Resolver, keeps_all_but_the_nameservers) {
  EXPECT_EQ(
      with_nameservers("; note\nsearch a b\nnameserver 1.2.3.4\n\noptions ndots:2", {"10.0.2.3"}),
      "search a b\noptions ndots:2\nnameserver 10.0.2.3\n");
  EXPECT_EQ(with_nameservers("", {"10.0.2.3"}), "nameserver 10.0.2.3\n");
}

TEST(Hosts, get_addresses_in_the_place_of_what_was_not_known) {
  EXPECT_EQ(with_addresses("127.0.0.1\tlocalhost\n127.0.1.1\tabc\nhost-gateway\tdocker.host\n",
                           "10.0.2.100", "192.0.2.1"),
            "127.0.0.1\tlocalhost\n10.0.2.100\tabc\n192.0.2.1\tdocker.host\n");
  EXPECT_EQ(with_addresses("host-gateway\tx", "10.0.2.100", ""), "host-gateway\tx");
  EXPECT_EQ(with_addresses("", "10.0.2.100", ""), "");
}

TEST(Failure, comes_through_the_output_of_a_hook) {
  Error error =
      make_error(Kind::busy, "bind '0.0.0.0:80'", "another").with_context("cannot publish");
  auto read = read_failure(write_failure(error));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_line(*read), to_line(error));
  EXPECT_EQ(read->kind, Kind::busy);
  EXPECT_EQ(read->hint, "another");
  EXPECT_EQ(read_failure("cannot execute: no such file"), std::nullopt);
}

TEST(HostsBlock, is_replaced_and_leaves_what_others_have_written) {
  std::string once = with_block("127.0.0.1\tlocalhost\n10.0.0.9 mine\n", "10.128.0.2\tserver\n");
  EXPECT_NE(once.find("10.0.0.9 mine\n"), once.npos);
  EXPECT_NE(once.find("10.128.0.2\tserver\n"), once.npos);
  std::string again = with_block(once, "10.128.0.3\tclient\n");
  EXPECT_EQ(again.find("server"), again.npos);
  EXPECT_NE(again.find("10.128.0.3\tclient\n"), again.npos);
  EXPECT_EQ(with_block(again, ""), "127.0.0.1\tlocalhost\n10.0.0.9 mine\n");
}

TEST(HostsBlock, of_many_beginnings_without_an_end_takes_no_line_along_and_no_time) {
  std::string begin = with_block("", "x\n");
  begin.resize(begin.find('\n') + 1);
  std::string hostile;
  while (hostile.size() < (size_t{4} << 20)) hostile += begin;
  EXPECT_EQ(with_block(hostile + "10.0.0.9 mine\n", ""), "10.0.0.9 mine\n");
}

TEST(HostsBlock, has_no_names_that_could_end_a_line) {
  Endpoint endpoint;
  endpoint.network = "n";
  endpoint.address = "10.128.0.2";
  endpoint.names = {"web", "a\nb", "c d", "#x", ""};
  Lease lease;
  lease.endpoints = {endpoint};
  EXPECT_EQ(peer_lines(lease, {lease}), "10.128.0.2\tweb\n");
}

}  // namespace
}  // namespace berth::network
