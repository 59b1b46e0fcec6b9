// SPDX-License-Identifier: Apache-2.0
#include "hub/htpasswd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace berth::hub {
namespace {

using ::testing::HasSubstr;

// As htpasswd -nbBC 4 makes it: "alice:secret".
constexpr std::string_view kAlice =
    "alice:$2y$04$KzxrnUPmsaqqsxLsHXYAz.0Jn/Lrf5TfGKq83byiv9zuwEhXqWJ26";

std::string fault_of(std::string_view text) {
  auto file = Htpasswd::parse(text, "htpasswd");
  return file.ok() ? "" : to_line(file.error());
}

TEST(HubHtpasswd, knows_a_password) {
  auto file = Htpasswd::parse("# who may\n\n" + std::string(kAlice) + "\r\n", "htpasswd");
  ASSERT_TRUE(file.ok()) << to_line(file.error());
  EXPECT_TRUE(file->has("alice"));
  EXPECT_FALSE(file->has("bob"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(file->verify("alice", "secret"));
    EXPECT_FALSE(file->verify("alice", "Secret"));
    EXPECT_FALSE(file->verify("alice", ""));
    EXPECT_FALSE(file->verify("bob", "secret"));
    EXPECT_FALSE(file->verify("", ""));
    EXPECT_FALSE(file->verify("alice", std::string("secret\0x", 8)));
    EXPECT_FALSE(file->verify("alice", std::string(100'000, 'x')));
  }
}

TEST(HubHtpasswd, threads_may_ask_at_once) {
  auto file = Htpasswd::parse(kAlice, "htpasswd");
  ASSERT_TRUE(file.ok());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&file, i] {
      for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(file->verify("alice", i % 2 == 0 ? "secret" : "wrong"), i % 2 == 0);
      }
    });
  }
}

TEST(HubHtpasswd, other_hashes_are_refused_with_their_line) {
  EXPECT_THAT(fault_of("\nbob:$apr1$salt$hash"),
              HasSubstr("htpasswd:2: the hash is not a bcrypt hash"));
  EXPECT_THAT(fault_of("bob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="), HasSubstr("not a bcrypt hash"));
  EXPECT_THAT(fault_of("bob:plain"), HasSubstr("not a bcrypt hash"));
  EXPECT_THAT(fault_of("bob:"), HasSubstr("not a bcrypt hash"));
  EXPECT_THAT(fault_of("bob:$2y$05$short"), HasSubstr("the hash is truncated"));
  EXPECT_THAT(fault_of("bob"), HasSubstr("expected NAME:HASH"));
  EXPECT_THAT(fault_of(":x"), HasSubstr("expected NAME:HASH"));
  EXPECT_THAT(fault_of(""), HasSubstr("it has no account"));
  EXPECT_THAT(fault_of("bob:$2y$20$" + std::string(53, 'a')), HasSubstr("a cost of 20"));
  EXPECT_THAT(fault_of(std::string(kAlice) + "\n" + std::string(kAlice)),
              HasSubstr("is given twice"));
}

}  // namespace
}  // namespace berth::hub
