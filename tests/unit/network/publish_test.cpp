// SPDX-License-Identifier: Apache-2.0
#include "network/publish.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace berth::network {
namespace {

Publish good(std::string_view text) {
  auto parsed = parse_publish(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Publish{};
}

std::string refusal(std::string_view text) {
  auto parsed = parse_publish(text);
  EXPECT_FALSE(parsed.ok()) << text;
  return parsed.ok() ? "" : parsed.error().what;
}

TEST(Publish, reads_what_docker_reads) {
  EXPECT_EQ(good("80"), (Publish{"", 0, 0, 80, 1, "tcp"}));
  EXPECT_EQ(good("8080:80"), (Publish{"", 8080, 8080, 80, 1, "tcp"}));
  EXPECT_EQ(good("8080:80/UDP"), (Publish{"", 8080, 8080, 80, 1, "udp"}));
  EXPECT_EQ(good("127.0.0.1:8080:80"), (Publish{"127.0.0.1", 8080, 8080, 80, 1, "tcp"}));
  EXPECT_EQ(good("127.0.0.1::80"), (Publish{"127.0.0.1", 0, 0, 80, 1, "tcp"}));
  EXPECT_EQ(good("8000-8002:80-82"), (Publish{"", 8000, 8002, 80, 3, "tcp"}));
  EXPECT_EQ(good("8000-8010:80"), (Publish{"", 8000, 8010, 80, 1, "tcp"}));
  EXPECT_EQ(good("80-82"), (Publish{"", 0, 0, 80, 3, "tcp"}));
  EXPECT_EQ(good("1-65535:1-65535"), (Publish{"", 1, 65535, 1, 65535, "tcp"}));
  EXPECT_EQ(good(":80"), (Publish{"", 0, 0, 80, 1, "tcp"}));
}

TEST(Publish, reads_members) {
  EXPECT_EQ(good("published=8080,target=80,protocol=udp"), (Publish{"", 8080, 8080, 80, 1, "udp"}));
  EXPECT_EQ(good("target=80"), (Publish{"", 0, 0, 80, 1, "tcp"}));
  EXPECT_EQ(refusal("target=80,mode=host"), "publish 'target=80,mode=host': invalid field 'mode'");
  EXPECT_EQ(refusal("published=80"), "publish 'published=80': No port specified");
}

TEST(Publish, refuses_what_is_no_port) {
  EXPECT_EQ(refusal("abc"), "publish 'abc': Invalid containerPort: abc");
  EXPECT_EQ(refusal("0"), "publish '0': Invalid containerPort: 0");
  EXPECT_EQ(refusal("65536"), "publish '65536': Invalid containerPort: 65536");
  EXPECT_EQ(refusal("8080:82-80"), "publish '8080:82-80': Invalid containerPort: 82-80");
  EXPECT_EQ(refusal("x:80"), "publish 'x:80': Invalid hostPort: x");
  EXPECT_EQ(refusal("1-2-3:80"), "publish '1-2-3:80': Invalid hostPort: 1-2-3");
  EXPECT_EQ(refusal("8000-8002:80-81"),
            "publish '8000-8002:80-81': Invalid ranges specified for container and host Ports: "
            "80-81 and 8000-8002");
  EXPECT_EQ(refusal("80/icmp"), "publish '80/icmp': Invalid proto: icmp");
  EXPECT_EQ(refusal("80/"), "publish '80/': Invalid proto: ");
  EXPECT_EQ(refusal("256.0.0.1:80:80"), "publish '256.0.0.1:80:80': Invalid ip address: 256.0.0.1");
  EXPECT_EQ(refusal("localhost:80:80"), "publish 'localhost:80:80': Invalid ip address: localhost");
  EXPECT_EQ(refusal(""), "publish '': No port specified");
  EXPECT_EQ(refusal("8080:"), "publish '8080:': No port specified");
  EXPECT_EQ(refusal("-80"), "publish '-80': Invalid containerPort: -80");
  EXPECT_EQ(refusal("+80"), "publish '+80': Invalid containerPort: +80");
}

TEST(Publish, says_what_it_does_not_have) {
  EXPECT_EQ(parse_publish("80/sctp").error().kind, Kind::unsupported);
}

TEST(Publish, has_an_address_of_ipv6_in_brackets) {
  EXPECT_EQ(good("[::1]:8080:80"), (Publish{"::1", 8080, 8080, 80, 1, "tcp"}));
  EXPECT_EQ(good("[2001:DB8:0:0::7]:53:53/udp"), (Publish{"2001:db8::7", 53, 53, 53, 1, "udp"}));
  EXPECT_EQ(good("[::]::80"), (Publish{"::", 0, 0, 80, 1, "tcp"}));
  EXPECT_EQ(good("[::ffff:10.0.0.1]:8080:80"), (Publish{"10.0.0.1", 8080, 8080, 80, 1, "tcp"}));
  EXPECT_EQ(refusal("::1:8080:80"), "publish '::1:8080:80': Invalid ip address: ::1");
  EXPECT_EQ(refusal("[fe80::1%eth0]:8080:80"),
            "publish '[fe80::1%eth0]:8080:80': Invalid ip address: [fe80::1%eth0]");
  EXPECT_EQ(refusal("[10.0.0.1]:8080:80"),
            "publish '[10.0.0.1]:8080:80': Invalid ip address: [10.0.0.1]");
  EXPECT_EQ(refusal("[]:8080:80"), "publish '[]:8080:80': Invalid ip address: []");
}

TEST(Publish, at_an_address_of_ipv6_is_for_pasta) {
  std::vector<Publish> four = {good("10.0.0.1:80:80"), good("80")};
  std::vector<Publish> six = {good("80"), good("[::1]:80:80")};
  for (const char* mode : {kBridge, kSlirp, kPasta}) EXPECT_TRUE(check_versions(four, mode).ok());
  EXPECT_TRUE(check_versions(six, kPasta).ok());
  for (const char* mode : {kBridge, kSlirp}) {
    auto refused = check_versions(six, mode);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, Kind::unsupported);
  }
}

TEST(Publish, all_adds_what_is_exposed_and_not_named) {
  std::vector<Publish> named = {good("8000:80")};
  std::vector<Exposed> exposed = {{80, 81, "tcp"}, {80, 80, "udp"}, {9, 9, "sctp"}};
  EXPECT_EQ(all_ports(named, exposed, PublishAll::no), named);
  EXPECT_EQ(all_ports(named, exposed, PublishAll::yes),
            (std::vector<Publish>{named[0], {"", 0, 0, 81, 1, "tcp"}, {"", 0, 0, 80, 1, "udp"}}));
}

TEST(Exposed, are_ports_and_ranges) {
  EXPECT_EQ(*parse_exposed("80"), (Exposed{80, 80, "tcp"}));
  EXPECT_EQ(*parse_exposed("80-90/udp"), (Exposed{80, 90, "udp"}));
  EXPECT_FALSE(parse_exposed("80-70").ok());
  EXPECT_FALSE(parse_exposed("80/x").ok());
}

}  // namespace
}  // namespace berth::network
