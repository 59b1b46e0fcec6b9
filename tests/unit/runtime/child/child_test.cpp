// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/child.hpp"

#include <gtest/gtest.h>

#include "sys/net/socket.hpp"

namespace berth::runtime {
namespace {

/// A child whose other end of the channel is the test's.
class SecondBirth : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ends = sys::socket_pair();
    ASSERT_TRUE(ends.ok());
    child_.channel = Channel(std::move(ends->first));
    other_.emplace(std::move(ends->second));
  }

  Message heard() {
    auto incoming = child_.receive();
    EXPECT_TRUE(incoming.ok() && incoming->has_value());
    return incoming.ok() && *incoming ? (*incoming)->report.message : Message::failed;
  }

  Child child_;
  std::optional<Channel> other_;
};

TEST_F(SecondBirth, is_heard_of_behind_what_the_new_process_said_first) {
  ASSERT_TRUE(other_->send(Message::console).ok());
  ASSERT_TRUE(other_->send(Message::born, {}, 4711).ok());
  ASSERT_TRUE(other_->send(Message::ready).ok());
  ASSERT_TRUE(await_second_fork(child_).ok());
  EXPECT_EQ(child_.process.pid(), 4711);
  child_.process.release();  // nobody's
  EXPECT_EQ(heard(), Message::console);
  EXPECT_EQ(heard(), Message::ready);
}

TEST_F(SecondBirth, that_never_came_leaves_the_reason_to_be_heard) {
  ASSERT_TRUE(other_->send(to_report(make_error(Kind::denied, "join"), Stage::engine)).ok());
  other_.reset();
  auto settled = place_and_attend(
      child_, [&] { return await_second_fork(child_); },
      [&]() -> Result<void> {
        auto incoming = child_.receive();
        if (!incoming.ok() || !*incoming) return make_error(Kind::bug, "nothing was heard");
        return to_error((*incoming)->report);
      });
  ASSERT_FALSE(settled.ok());
  EXPECT_EQ(settled.error().what, "join");
}

}  // namespace
}  // namespace berth::runtime
