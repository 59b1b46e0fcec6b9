// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/client_limits.hpp"
#include "hub/reply.hpp"

namespace berth::hub {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Outgoing::Bytes document(size_t size) {
  return std::make_shared<const std::string>(size, 'x');
}

TEST(HubOutgoing, counts_a_document_once_however_many_take_it) {
  Outgoing outgoing(100);
  auto large = document(80);
  EXPECT_TRUE(outgoing.add(large));
  EXPECT_TRUE(outgoing.add(large));
  EXPECT_EQ(outgoing.held(), 80u);
  outgoing.remove(large);
  EXPECT_EQ(outgoing.held(), 80u) << "another one takes it still";
  outgoing.remove(large);
  EXPECT_EQ(outgoing.held(), 0u);
}

TEST(HubOutgoing, refuses_what_would_be_too_much_and_counts_nothing_of_it) {
  Outgoing outgoing(100);
  auto first = document(60);
  auto second = document(60);
  EXPECT_TRUE(outgoing.add(first));
  EXPECT_FALSE(outgoing.add(second));
  EXPECT_FALSE(outgoing.add(document(101)));
  EXPECT_TRUE(outgoing.add(first)) << "it is there already";
  EXPECT_TRUE(outgoing.add(document(40))) << "exactly the most";
  EXPECT_EQ(outgoing.held(), 100u);
}

TEST(HubOutgoing, has_room_again_when_a_document_was_taken) {
  Outgoing outgoing(100);
  auto first = document(60);
  auto second = document(60);
  ASSERT_TRUE(outgoing.add(first));
  ASSERT_FALSE(outgoing.add(second));
  outgoing.remove(first);
  EXPECT_TRUE(outgoing.add(second));
}

TEST(HubHead, is_a_status_line_headers_and_an_empty_line) {
  Reply reply;
  reply.status = 206;
  reply.headers = {{"Content-Range", "bytes 0-1/9"}};
  std::string text = head_text(reply, 2, false);
  EXPECT_THAT(text, StartsWith("HTTP/1.1 206 Partial Content\r\nDate: "));
  EXPECT_THAT(text, HasSubstr("\r\nContent-Range: bytes 0-1/9\r\n"));
  EXPECT_THAT(text, EndsWith("\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_THAT(text, Not(HasSubstr("Connection")));
}

TEST(HubHead, says_when_the_end_of_the_connection_ends_the_body) {
  std::string text = head_text({}, std::nullopt, true);
  EXPECT_THAT(text, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(text, EndsWith("\r\nConnection: close\r\n\r\n"));
}

// What a registry says is passed on; a header of its own it must not become.
TEST(HubHead, leaves_out_values_that_would_be_more_than_one_line) {
  const std::string zero("a\0b", 3);
  for (const std::string& value : {std::string("a\r\nSet-Cookie: x=1"), std::string("a\nX: y"),
                                   std::string("a\rX: y"), std::string("\r\n\r\nHTTP/1.1 200 OK"),
                                   zero, std::string("a\x1b[2J"), std::string("\x7f")}) {
    Reply reply;
    reply.headers = {{"Content-Type", value}, {"ETag", "kept"}};
    std::string text = head_text(reply, 0, false);
    EXPECT_THAT(text, Not(HasSubstr("\r\nContent-Type: "))) << value;
    EXPECT_THAT(text, HasSubstr("\r\nETag: kept\r\n")) << value;
    EXPECT_EQ(text.find("\r\n\r\n"), text.size() - 4) << value;
  }
}

TEST(HubHead, keeps_tabs_and_bytes_beyond_ascii) {
  Reply reply;
  reply.headers = {{"ETag", "a\tb \xc3\xa9"}};
  EXPECT_THAT(head_text(reply, 0, false), HasSubstr("\r\nETag: a\tb \xc3\xa9\r\n"));
}

TEST(HubHead, has_a_line_for_a_status_that_nobody_knows) {
  Reply reply;
  reply.status = 299;
  std::string text = head_text(reply, 0, false);
  EXPECT_THAT(text, StartsWith("HTTP/1.1 299 "));
}

}  // namespace
}  // namespace berth::hub
