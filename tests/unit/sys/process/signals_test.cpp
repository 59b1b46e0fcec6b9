// SPDX-License-Identifier: Apache-2.0
#include "sys/process/signals.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>

#include "sys/fd/poll.hpp"
#include "sys/net/socket.hpp"

namespace berth::sys {
namespace {

/// SIGUSR2 within `patience`.
bool is_told(const Fd& signals, std::chrono::milliseconds patience) {
  std::vector<pollfd> entries = {{signals.get(), POLLIN, 0}};
  auto ready = poll(entries, patience);
  auto received = read_signal(signals);  // it would be delivered when it is blocked no more
  return ready.ok() && *ready == 1 && received.ok() && *received;
}

class HangupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto received = receive_signals({SIGUSR2});
    ASSERT_TRUE(received.ok());
    signals_ = std::move(*received);
    auto pair = socket_pair();
    ASSERT_TRUE(pair.ok());
    ours_ = std::move(pair->first);
    theirs_ = std::move(pair->second);
  }

  SignalMask mask_;
  Fd signals_, ours_, theirs_;
};

TEST_F(HangupTest, the_end_of_the_other_side_is_a_signal) {
  SignalOnHangup watch(theirs_.get(), SIGUSR2);
  EXPECT_FALSE(is_told(signals_, std::chrono::milliseconds(20)));
  ::shutdown(ours_.get(), SHUT_WR);
  EXPECT_TRUE(is_told(signals_, std::chrono::seconds(10)));
}

TEST_F(HangupTest, who_is_gone_is_told_nothing) {
  {
    SignalOnHangup watch(theirs_.get(), SIGUSR2);
    ::shutdown(ours_.get(), SHUT_WR);
    EXPECT_FALSE(is_told(signals_, std::chrono::milliseconds(100)));
  }
  EXPECT_FALSE(is_told(signals_, std::chrono::milliseconds(1200)));
}

}  // namespace
}  // namespace berth::sys
