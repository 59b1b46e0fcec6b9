// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "image/registry_access.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::image {
namespace {

const JobPeers kPeers{"docker.io/library/debian:12", {"10.1.2.3:4567", "[fd00::1]:80"}, "secret"};

TEST(JobOrder, survives_its_text) {
  JobOrder order;
  order.root = "/var/lib/berth";
  order.reference = kPeers.reference;
  order.key = kPeers.key;
  order.access.insecure_registries = {"lab:5000"};
  order.access.peers = kPeers;
  order.idle_seconds = 7;
  auto read = parse_job_order(to_json(order));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(read->root, order.root);
  EXPECT_EQ(read->reference, order.reference);
  EXPECT_EQ(read->key, order.key);
  EXPECT_EQ(read->access.insecure_registries, order.access.insecure_registries);
  ASSERT_TRUE(read->access.peers);
  EXPECT_EQ(read->access.peers->addresses, kPeers.addresses);
  EXPECT_EQ(read->idle_seconds, 7u);
}

TEST(JobOrder, what_it_does_not_know_is_refused) {
  EXPECT_FALSE(parse_job_order("{}").ok());
  EXPECT_FALSE(parse_job_order(R"({"root":"/r","reference":"a","key":"k","colour":"red"})").ok());
}

TEST(JobPeers, come_with_the_request_of_a_pull) {
  PullRequest pull;
  pull.root = "/r";
  pull.reference = "debian:12";
  pull.access.peers = kPeers;
  auto read = parse_request(to_json(TransferRequest(pull)));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  const auto& peers = std::get<PullRequest>(*read).access.peers;
  ASSERT_TRUE(peers);
  EXPECT_EQ(peers->reference, kPeers.reference);
  EXPECT_EQ(peers->addresses, kPeers.addresses);
  EXPECT_EQ(peers->key, kPeers.key);
}

}  // namespace
}  // namespace berth::image
