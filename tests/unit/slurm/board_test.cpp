// SPDX-License-Identifier: Apache-2.0
#include "slurm/board.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace berth::slurm {
namespace {

using Time = Board::Time;

const std::string kDoor(kSecretDigits, 'a');
const std::string kKey(kSecretDigits, 'e');

std::string join(uint32_t node, const std::string& address, const std::string& door = kDoor) {
  std::string line = to_line(Hello{door, node, 64, address});
  return line.substr(0, line.size() - 1);
}

TEST(SlurmTree, each_node_asks_one_with_a_smaller_number) {
  for (uint32_t arity : {1u, 2u, 4u, 16u}) {
    std::map<uint32_t, uint32_t> children;
    for (uint32_t node = 1; node < 1024; ++node) {
      EXPECT_LT(parent_of(node, arity), node);
      ++children[parent_of(node, arity)];
    }
    for (uint32_t node = 0; node < 1024; ++node) {
      EXPECT_LE(children[node], arity);
      EXPECT_EQ(children[node] > 0, has_children(node, 1024, arity)) << node << " of " << arity;
    }
  }
  EXPECT_EQ(parent_of(0, 4), 0u);
  EXPECT_FALSE(has_children(0, 1, 4));
}

TEST(SlurmTree, a_thousand_nodes_are_ten_deep) {
  int deepest = 0;
  for (uint32_t node = 0; node < 1024; ++node) {
    int depth = 0;
    for (uint32_t at = node; at != 0; at = parent_of(at, kArity)) ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_EQ(deepest, 10);
}

TEST(SlurmBoardMessage, an_invitation_survives_its_text) {
  auto read = parse_invitation(to_text(Invitation{4567, 8, kDoor, kKey}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->port, 4567);
  EXPECT_EQ(read->arity, 8u);
  EXPECT_EQ(read->door, kDoor);
  EXPECT_EQ(read->key, kKey);
}

TEST(SlurmBoardMessage, what_is_no_invitation_is_refused_without_its_secret) {
  for (const std::string& text :
       {std::string(), "1:4567:4:" + kDoor, "1:4567:4:" + kDoor + ":" + kKey, "2:4567:4:" + kDoor,
        "2:0:4:" + kDoor + ":" + kKey, "2:70000:4:" + kDoor + ":" + kKey,
        "2:4567:0:" + kDoor + ":" + kKey, "2:4567:65:" + kDoor + ":" + kKey,
        "2:4567:4:" + kDoor + ":" + kKey + "e", "2:4567:4:" + kDoor + "a:" + kKey,
        "2:4567:4:" + std::string(kSecretDigits, 'g') + ":" + kKey,
        "2:4567:4:" + kDoor + ":" + kKey + ":x"}) {
    auto read = parse_invitation(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(to_line(read.error()).find("aaaa"), std::string::npos);
    EXPECT_EQ(to_line(read.error()).find("eeee"), std::string::npos);
  }
}

TEST(SlurmBoardMessage, an_address_is_numbers_alone) {
  for (const char* text : {"10.1.2.3:80", "127.0.0.1:65535", "[::1]:1", "[fd00::a]:4567"}) {
    EXPECT_TRUE(is_address(text)) << text;
  }
  for (const char* text : {"", "10.1.2.3", "10.1.2.3:", "10.1.2.3:0", "10.1.2.3:65536", ":80",
                           "node1:80", "a@10.1.2.3:80", "10.1.2.3:80/x", "::1:80", "[::1:80",
                           "[]:80", "10.1.2.3:80 ", "10.1.2.3\n:80", "[fe80::1%eth0]:80"}) {
    EXPECT_FALSE(is_address(text)) << text;
  }
}

TEST(SlurmBoardMessage, a_greeting_survives_its_line) {
  for (const char* address : {"", "10.1.2.3:80"}) {
    std::string line = to_line(Hello{kDoor, 3, 8, address});
    ASSERT_EQ(line.back(), '\n');
    EXPECT_LE(line.size(), kMaxLine);
    auto read = parse_hello(line.substr(0, line.size() - 1));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->node, 3u);
    EXPECT_EQ(read->nodes, 8u);
    EXPECT_EQ(read->address, address);
  }
}

TEST(SlurmBoardMessage, a_node_outside_of_the_step_is_none) {
  EXPECT_FALSE(parse_hello("join " + kDoor + " 8 8 -").ok());
  EXPECT_FALSE(parse_hello("join " + kDoor + " 0 99999999 -").ok());
  EXPECT_FALSE(parse_hello("join " + kDoor + " 1 8 node1:80").ok());
  EXPECT_FALSE(parse_hello("join " + kDoor + " 1 8").ok());
  EXPECT_FALSE(parse_hello("GET / HTTP/1.1").ok());
}

TEST(SlurmBoardMessage, directions_survive_their_line) {
  auto read = parse_directions("from 10.0.0.1:80 [::1]:81");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(to_line(*read), "from 10.0.0.1:80 [::1]:81\n");
  EXPECT_EQ(to_line(*parse_directions("later")), "later\n");
  EXPECT_TRUE(parse_directions("from")->from.empty());
  EXPECT_FALSE(parse_directions("from http://evil/").ok());
  EXPECT_FALSE(parse_directions("").ok());
}

/// What guest `guest` is told now; "": nothing yet.
std::string told(Board& board, int guest, Time now) {
  for (const Board::Answer& answer : board.answers(now)) {
    if (answer.guest == guest) return to_line(answer.directions);
  }
  return "";
}

TEST(SlurmBoard, the_first_node_asks_the_registry_at_once) {
  Board board(kDoor, 2);
  ASSERT_TRUE(board.arrive(7, join(0, "10.0.0.1:80"), Time(0)).ok());
  EXPECT_EQ(told(board, 7, Time(0)), "from\n");
  EXPECT_EQ(board.next(), std::nullopt);
}

TEST(SlurmBoard, a_node_is_told_all_above_it_the_nearest_first) {
  Board board(kDoor, 2);
  ASSERT_TRUE(board.arrive(1, join(0, "10.0.0.1:80"), Time(0)).ok());
  ASSERT_TRUE(board.arrive(2, join(1, "10.0.0.2:80"), Time(0)).ok());
  ASSERT_TRUE(board.arrive(3, join(3, ""), Time(0)).ok());
  EXPECT_EQ(told(board, 3, Time(0)), "from 10.0.0.2:80 10.0.0.1:80\n");
}

TEST(SlurmBoard, a_node_waits_for_the_one_that_it_asks_and_not_for_ever) {
  Board board(kDoor, 2);
  ASSERT_TRUE(board.arrive(1, join(0, "10.0.0.1:80"), Time(0)).ok());
  ASSERT_TRUE(board.arrive(3, join(3, ""), Time(100)).ok());
  EXPECT_EQ(told(board, 3, Time(100)), "");
  EXPECT_EQ(board.next(), Time(100) + Board::kForParent);
  EXPECT_EQ(told(board, 3, Time(100) + Board::kForParent), "from 10.0.0.1:80\n");
}

TEST(SlurmBoard, a_parent_that_comes_ends_the_waiting) {
  Board board(kDoor, 2);
  ASSERT_TRUE(board.arrive(3, join(3, ""), Time(0)).ok());
  EXPECT_EQ(told(board, 3, Time(0)), "");
  ASSERT_TRUE(board.arrive(2, join(1, "10.0.0.2:80"), Time(5)).ok());
  EXPECT_EQ(told(board, 3, Time(5)), "from 10.0.0.2:80\n");
}

TEST(SlurmBoard, who_has_nobody_above_it_asks_the_registry_in_the_end) {
  Board board(kDoor, 2);
  ASSERT_TRUE(board.arrive(3, join(3, ""), Time(0)).ok());
  EXPECT_EQ(board.next(), Board::kForAnybody);
  EXPECT_EQ(told(board, 3, Board::kForParent), "");
  EXPECT_EQ(told(board, 3, Board::kForAnybody), "from\n");
}

TEST(SlurmBoard, a_node_that_serves_nobody_is_passed_over) {
  Board board(kDoor, 2);
  ASSERT_TRUE(board.arrive(1, join(0, "10.0.0.1:80"), Time(0)).ok());
  ASSERT_TRUE(board.arrive(2, join(1, ""), Time(0)).ok());
  ASSERT_TRUE(board.arrive(3, join(3, ""), Time(0)).ok());
  EXPECT_EQ(told(board, 3, Time(0)), "from 10.0.0.1:80\n");
}

TEST(SlurmBoard, who_has_another_door_is_refused_and_changes_nothing) {
  Board board(kDoor, 2);
  auto refused = board.arrive(1, join(0, "10.0.0.6:80", std::string(kSecretDigits, 'b')), Time(0));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, Kind::denied);
  ASSERT_TRUE(board.arrive(2, join(1, "10.0.0.2:80"), Time(0)).ok());
  EXPECT_EQ(told(board, 2, Time(0)), "");
}

TEST(SlurmBoard, who_has_left_is_told_nothing) {
  Board board(kDoor, 2);
  ASSERT_TRUE(board.arrive(3, join(1, "10.0.0.2:80"), Time(0)).ok());
  EXPECT_EQ(board.oldest(), 3);
  board.leave(3);
  ASSERT_TRUE(board.arrive(4, join(0, "10.0.0.1:80"), Time(0)).ok());
  EXPECT_EQ(told(board, 3, Time(0)), "");
  EXPECT_EQ(board.oldest(), std::nullopt);
}

TEST(SlurmBoard, a_thousand_nodes_in_any_order_make_one_tree) {
  constexpr uint32_t kNodes = 1024;
  Board board(kDoor, 4);
  std::map<int, std::string> told_to;
  for (uint32_t i = 0; i < kNodes; ++i) {
    uint32_t node = i * 389 % kNodes;  // each once: 389 and 1024 have no common divisor
    std::string address =
        has_children(node, kNodes, 4) ? "10.0.0.1:" + std::to_string(1000 + node) : "";
    std::string line = to_line(Hello{kDoor, node, kNodes, address});
    line.pop_back();
    ASSERT_TRUE(board.arrive(static_cast<int>(node), line, Time(i)).ok());
    for (const Board::Answer& answer : board.answers(Time(i))) {
      told_to[answer.guest] = answer.directions.from.empty() ? "" : answer.directions.from.front();
    }
  }
  ASSERT_EQ(told_to.size(), kNodes);
  for (uint32_t node = 1; node < kNodes; ++node) {
    EXPECT_EQ(told_to[static_cast<int>(node)],
              "10.0.0.1:" + std::to_string(1000 + parent_of(node, 4)));
  }
  EXPECT_EQ(told_to[0], "");
}

}  // namespace
}  // namespace berth::slurm
