// SPDX-License-Identifier: Apache-2.0
#include "sys/net/socket.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::sys {
namespace {

std::string receive(const Fd& socket) {
  char bytes[16];
  auto received = receive_message(socket, bytes, sizeof bytes);
  EXPECT_TRUE(received.ok());
  return received.ok() ? std::string(bytes, received->size) : "failed";
}

TEST(Messages, last_words_come_though_their_speaker_did_not_listen) {
  auto ends = *socket_pair();
  ASSERT_TRUE(send_message(ends.first, "go", 2, Fd()).ok());
  ASSERT_TRUE(send_message(ends.second, "no", 2, Fd()).ok());
  ends.second.reset();
  EXPECT_EQ(receive(ends.first), "no");
  EXPECT_EQ(receive(ends.first), "");
}

TEST(Sockets, are_for_their_user_alone) {
  char name[] = "/tmp/berth-tests-socket-XXXXXX";
  std::string directory = ::mkdtemp(name);
  auto socket = listen_unix(directory + "/socket");
  EXPECT_TRUE(socket.ok());
  auto entry = *stat_entry(cwd(), directory + "/socket");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->st_mode & 0777, 0600u);
  EXPECT_TRUE(remove_tree(cwd(), directory).ok());
}

}  // namespace
}  // namespace berth::sys
