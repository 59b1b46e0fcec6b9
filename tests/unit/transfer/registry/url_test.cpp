// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/url.hpp"

#include <gtest/gtest.h>

namespace berth::transfer {
namespace {

std::string resolved(const std::string& base, const std::string& location) {
  Result<Url> url = resolve_url(parse_url(base).value(), location);
  return url.ok() ? url->text() : to_line(url.error());
}

TEST(Url, takes_an_address_apart) {
  Url url = parse_url("https://Registry.Example:5443/v2/a/b?x=1&y=2").value();
  EXPECT_EQ(url.scheme, "https");
  EXPECT_EQ(url.host, "registry.example");
  EXPECT_EQ(url.port, 5443);
  EXPECT_EQ(url.path, "/v2/a/b");
  EXPECT_EQ(url.query, "x=1&y=2");
  EXPECT_EQ(url.origin(), "https://registry.example:5443");
}

TEST(Url, shows_no_query_because_it_may_hold_a_signature) {
  Url url = parse_url("https://store.example/blob?X-Amz-Signature=secret").value();
  EXPECT_EQ(url.shown(), "https://store.example/blob");
}

TEST(Url, refuses_what_is_no_web_address_or_names_a_user) {
  for (const char* text :
       {"", "/v2/", "ftp://h/", "file:///etc/passwd", "https://u:p@h/", "https://", "http://h:0/",
        "http://h:99999/", "https://h/a b", "https://h/\r\nX: y"}) {
    EXPECT_FALSE(parse_url(text).ok()) << text;
  }
}

TEST(Url, resolves_locations_as_browsers_do) {
  EXPECT_EQ(resolved("https://h/v2/a/blobs/x", "/elsewhere?q=1"), "https://h:443/elsewhere?q=1");
  EXPECT_EQ(resolved("https://h/v2/a/blobs/x", "y"), "https://h:443/v2/a/blobs/y");
  EXPECT_EQ(resolved("https://h/v2/", "http://other:81/z"), "http://other:81/z");
  EXPECT_EQ(resolved("http://h/v2/", "//other/z"), "http://other:80/z");
  EXPECT_EQ(resolved("https://h/", "file:///etc/passwd"), "read URL 'file:///etc/passwd'");
}

TEST(Url, adds_to_the_query_that_is_there) {
  Url url = parse_url("http://h/u?state=s").value();
  EXPECT_EQ(with_query(url, "digest=sha256%3Aab").query, "state=s&digest=sha256%3Aab");
  url.query.clear();
  EXPECT_EQ(with_query(url, "a=b").query, "a=b");
  EXPECT_EQ(percent_encode("sha256:ab c/~"), "sha256%3Aab%20c%2F~");
}

TEST(Url, knows_loopback_and_link_local_hosts) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "[::1]"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host :
       {"127.0.0.1.evil.example", "127.example", "localhost.example", "10.0.0.1"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
  EXPECT_TRUE(is_link_local("169.254.169.254"));
  EXPECT_TRUE(is_link_local("[fe80::1]"));
  EXPECT_FALSE(is_link_local("169.254.example.com"));
}

TEST(Url, knows_how_near_an_address_is_in_each_of_its_forms) {
  for (const char* host :
       {"localhost", "localhost.", "a.localhost", "127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3",
        "::1", "[::1]", "::", "[::ffff:127.0.0.1]", "::127.0.0.1"}) {
    EXPECT_EQ(nearness(host), Nearness::machine) << host;
  }
  for (const char* host : {"169.254.169.254", "[fe80::1]", "fe80::1%eth0", "febf::1",
                           "::ffff:169.254.169.254", "[::ffff:a9fe:a9fe]"}) {
    EXPECT_EQ(nearness(host), Nearness::link) << host;
  }
  for (const char* host :
       {"registry.example", "127.0.0.1.example", "localhost.example", "10.0.0.1", "192.168.0.1",
        "fec0::1", "fd00::1", "2001:db8::1", "128.0.0.1", "1", ""}) {
    EXPECT_EQ(nearness(host), Nearness::anywhere) << host;
  }
}

TEST(Url, nobody_sends_us_nearer_than_he_is) {
  constexpr Nearness kAll[] = {Nearness::anywhere, Nearness::link, Nearness::machine};
  for (Nearness one : kAll) {
    EXPECT_TRUE(may_send(one, one));
    EXPECT_TRUE(may_send(one, Nearness::anywhere));
  }
  EXPECT_FALSE(may_send(Nearness::anywhere, Nearness::machine));
  EXPECT_FALSE(may_send(Nearness::anywhere, Nearness::link));
  EXPECT_FALSE(may_send(Nearness::link, Nearness::machine));
  EXPECT_FALSE(may_send(Nearness::machine, Nearness::link));
}

TEST(Url, knows_its_host_by_name_port_and_domain) {
  Url url = *parse_url("https://Reg.Example.org:5000/v2/");
  for (const char* pattern :
       {"reg.example.org", "REG.example.org:5000", "*.example.org", "*.org"}) {
    EXPECT_TRUE(is_host(pattern, url)) << pattern;
  }
  for (const char* pattern : {"example.org", "reg.example.org:443", "*.reg.example.org",
                              "*.xample.org", "reg.example.org/team", "*", ""}) {
    EXPECT_FALSE(is_host(pattern, url)) << pattern;
  }
}

}  // namespace
}  // namespace berth::transfer
