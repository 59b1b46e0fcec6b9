// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/network/network.hpp"

namespace berth::engine {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(HostsText, resolves_the_containers_own_name) {
  EXPECT_THAT(*hosts_text({}, "box", "ignored"), HasSubstr("127.0.1.1\tbox\n"));
  EXPECT_THAT(*hosts_text({}, "box", ""), StartsWith("127.0.0.1\tlocalhost\n"));
  RunRequest request;
  request.domainname = "example.org";
  EXPECT_THAT(*hosts_text(request, "box", ""), HasSubstr("127.0.1.1\tbox.example.org box\n"));
}

TEST(HostsText, adds_the_hosts_that_were_asked_for) {
  RunRequest request;
  request.add_host = {"db:10.0.0.1", "six:fe80::1"};
  EXPECT_THAT(*hosts_text(request, "box", ""), EndsWith("10.0.0.1\tdb\nfe80::1\tsix\n"));
  request.network = Network::host;
  EXPECT_EQ(*hosts_text(request, "box", "1.2.3.4 here"),
            "1.2.3.4 here\n10.0.0.1\tdb\nfe80::1\tsix\n");
}

TEST(HostsText, knows_the_way_to_the_host_or_says_that_there_is_none) {
  RunRequest request;
  request.add_host = {"up:host-gateway"};
  EXPECT_EQ(to_line(hosts_text(request, "box", "").error()),
            "--add-host 'up:host-gateway': this network has no route to the host; try: "
            "--network host");
  request.network = Network::host;
  EXPECT_EQ(*hosts_text(request, "box", ""), "127.0.0.1\tup\n");
}

TEST(ResolverText, replaces_only_what_flags_name) {
  const char* kHost = "# mine\nnameserver 1.1.1.1\nsearch a b\noptions edns0\n";
  RunRequest request;
  EXPECT_EQ(resolver_text(request, kHost), kHost);
  request.dns = {"9.9.9.9"};
  EXPECT_EQ(resolver_text(request, kHost),
            "# mine\nsearch a b\noptions edns0\nnameserver 9.9.9.9\n");
  request.dns_search = {"."};
  request.dns_option = {"ndots:1"};
  EXPECT_EQ(resolver_text(request, kHost), "# mine\nnameserver 9.9.9.9\noptions ndots:1\n");
  request.dns_search = {"c", "d"};
  EXPECT_THAT(resolver_text(request, kHost), HasSubstr("search c d\n"));
}

}  // namespace
}  // namespace berth::engine
