// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/protocol.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "sys/net/socket.hpp"

namespace berth::runtime {
namespace {

TEST(ChildReport, keeps_the_error_with_its_contexts_as_text) {
  Error error = sys_error(2, "open '/x'").with_context("cannot mount").with_hint("look there");
  Error back = to_error(to_report(error, Stage::command));
  EXPECT_EQ(back.kind, Kind::not_found);
  EXPECT_EQ(to_line(back), to_line(error));
}

TEST(ChildReport, cuts_what_does_not_fit) {
  Error back = to_error(to_report(make_error(Kind::io, std::string(5000, 'x')), Stage::engine));
  EXPECT_EQ(back.what, std::string(511, 'x'));
}

TEST(Channel, passes_messages_in_order_and_tells_the_end) {
  auto ends = sys::socket_pair();
  ASSERT_TRUE(ends.ok());
  Channel a(std::move(ends->first));
  auto b = std::make_unique<Channel>(std::move(ends->second));
  ASSERT_TRUE(b->send(Message::hooks_due, "prestart").ok());
  ASSERT_TRUE(b->send(Message::cgroup_joined, {}, 42).ok());
  EXPECT_FALSE(sys::peer_is_gone(a.fd()));
  b.reset();
  EXPECT_TRUE(sys::peer_is_gone(a.fd()));  // whatever is still to be read
  auto first = a.receive();
  ASSERT_TRUE(first.ok() && first->has_value());
  EXPECT_STREQ((*first)->report.text, "prestart");
  auto second = a.expect(Message::cgroup_joined);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->number, 42);
  auto third = a.receive();
  ASSERT_TRUE(third.ok());
  EXPECT_FALSE(third->has_value());
  EXPECT_FALSE(a.expect(Message::ready).ok());
  EXPECT_FALSE(a.send(Message::ready).ok());  // and no SIGPIPE
}

TEST(Channel, hands_over_a_descriptor) {
  auto ends = sys::socket_pair();
  auto pipe = sys::make_pipe();
  ASSERT_TRUE(ends.ok() && pipe.ok());
  Channel a(std::move(ends->first));
  Channel b(std::move(ends->second));
  ASSERT_TRUE(a.send(Message::console, {}, 0, pipe->write).ok());
  auto got = b.receive();
  ASSERT_TRUE(got.ok() && got->has_value());
  EXPECT_TRUE((*got)->passed);
}

}  // namespace
}  // namespace berth::runtime
