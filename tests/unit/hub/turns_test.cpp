// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hub/client_limits.hpp"
#include "unit/hub/address.hpp"

namespace berth::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A pool whose tasks run when they are told to.
struct Pool {
  std::vector<Turns::Task> started;
  std::vector<std::string> done;
  Turns turns{2, [this](Turns::Task task) { started.push_back(std::move(task)); }};

  void add(std::string_view address, const std::string& name) {
    turns.add(at(address), [this, name] { done.push_back(name); });
  }
  void run_first() {
    Turns::Task task = std::move(started.front());
    started.erase(started.begin());
    task();
  }
};

TEST(HubTurns, one_address_waits_for_itself_and_others_do_not) {
  Pool pool;
  for (const char* name : {"a1", "a2", "a3", "a4"}) pool.add("10.0.0.1", name);
  EXPECT_EQ(pool.started.size(), 2u);
  pool.add("10.0.0.2", "b1");
  ASSERT_EQ(pool.started.size(), 3u);
  for (int i = 0; i < 5; ++i) pool.run_first();
  EXPECT_THAT(pool.done, ElementsAre("a1", "a2", "b1", "a3", "a4"));
  EXPECT_THAT(pool.started, IsEmpty());
}

TEST(HubTurns, counts_again_from_nothing_when_all_have_ended) {
  Pool pool;
  for (int round = 0; round < 3; ++round) {
    pool.add("fd00::1", "x");
    pool.add("fd00::2", "y");
    pool.add("fd00::3", "z");
    EXPECT_EQ(pool.started.size(), 2u) << "all of a network of 64 bits are one";
    while (!pool.started.empty()) pool.run_first();
  }
  EXPECT_EQ(pool.done.size(), 9u);
}

TEST(HubTurns, a_task_may_add_another) {
  Pool pool;
  pool.turns.add(at("10.0.0.1"), [&pool] { pool.add("10.0.0.1", "inner"); });
  while (!pool.started.empty()) pool.run_first();
  EXPECT_THAT(pool.done, ElementsAre("inner"));
}

}  // namespace
}  // namespace berth::hub
