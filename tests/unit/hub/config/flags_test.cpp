// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/config/config.hpp"
#include "json/fields.hpp"

namespace berth::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(HubFlags, win_over_the_file_each_time) {
  Flags flags;
  flags.listen = {"127.0.0.1:0"};
  flags.upstream = "registry.example.org";
  flags.repositories = {"*"};
  flags.usual = "k80";
  flags.blobs = "redirect";
  for (const char* file : {"", "listen = ['[::1]:1']\ndefault = 'other'\nfleet = 'nodes'\n"}) {
    auto config = read_config(file, "hub.toml");
    ASSERT_TRUE(config.ok() && add_flags(*config, flags).ok());
    EXPECT_THAT(config->listen, ElementsAre("127.0.0.1:0"));
    EXPECT_EQ(config->usual, "k80");
    EXPECT_EQ(config->blobs, Blobs::redirect);
    EXPECT_EQ(config->upstream.size(), 1u);
  }
}

TEST(HubFlags, survive_json_within_an_order) {
  Order order;
  order.file = "hub.toml";
  order.flags.tls_ca = "ca.pem";
  order.flags.repositories = {"a", "b"};
  auto again = json::read<Order>(json::write(order), "order");
  ASSERT_TRUE(again.ok()) << to_line(again.error());
  EXPECT_EQ(again->file, "hub.toml");
  EXPECT_EQ(again->flags.tls_ca, "ca.pem");
  EXPECT_FALSE(again->flags.usual.has_value());
  EXPECT_THAT(again->flags.repositories, ElementsAre("a", "b"));
}

TEST(HubFlags, that_are_wrong_are_told) {
  Config config;
  Flags flags;
  flags.repositories = {"x"};
  EXPECT_THAT(to_line(add_flags(config, flags).error()), HasSubstr("--upstream"));
  flags = {};
  flags.log = "xml";
  EXPECT_FALSE(add_flags(config, flags).ok());
}

TEST(HubFixed, keeps_what_a_running_hub_cannot_change) {
  Config running;
  running.listen = {"127.0.0.1:1"};
  Config next = running;
  EXPECT_THAT(keep_fixed(running, next), IsEmpty());
  next.listen = {"127.0.0.1:2"};
  next.limits.transfers = 1;
  next.limits.connections = 100;
  next.limits.cache_mib = 3;
  next.usual = "k80";
  next.tls_certificate = next.tls_key = "x.pem";
  EXPECT_THAT(keep_fixed(running, next),
              ElementsAre("listen", "limits.connections", "limits.transfers", "tls-certificate"));
  EXPECT_THAT(next.listen, ElementsAre("127.0.0.1:1"));
  EXPECT_EQ(next.limits.transfers, running.limits.transfers);
  EXPECT_EQ(next.tls_certificate, "");
  EXPECT_EQ(next.limits.cache_mib, 3u);
  EXPECT_EQ(next.usual, "k80");
}

TEST(HubFixed, a_certificate_may_have_another_place_and_tls_stays) {
  Config running;
  running.tls_certificate = running.tls_key = "old.pem";
  Config next = running;
  next.tls_certificate = next.tls_key = "new.pem";
  EXPECT_THAT(keep_fixed(running, next), IsEmpty());
  EXPECT_EQ(next.tls_certificate, "new.pem");
  next.tls_certificate = next.tls_key = "";
  EXPECT_THAT(keep_fixed(running, next), ElementsAre("tls-certificate"));
  EXPECT_EQ(next.tls_key, "old.pem");
}

}  // namespace
}  // namespace berth::hub
