// SPDX-License-Identifier: Apache-2.0
#include "kube/plugin/cards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/gpu/driver_tree.hpp"

namespace berth::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kAny = "berth.dev/gpu";
constexpr const char* kNvidia = "berth.dev/gpu.nvidia";

gpu::Inventory two_gpus() {
  gpu::Inventory inventory;
  for (uint32_t index : {0U, 1U}) {
    gpu::Gpu one;
    one.index = index;
    one.uuid = index == 0 ? "GPU-a" : "GPU-b";
    one.pci_address = index == 0 ? "0000:01:00.0" : "0000:02:00.0";
    inventory.gpus.push_back(std::move(one));
  }
  return inventory;
}

class CardsTest : public ::testing::Test {
 protected:
  CardsTest() { start(); }
  void start() {
    auto ledger = gpu::Ledger::open(scratch_.path() + "/ledger", scratch_.path());
    ASSERT_TRUE(ledger.ok());
    cards_.emplace(std::move(*ledger), log_);
    cards_->set(two_gpus(), {{kAny, std::nullopt, "", 1}, {kNvidia, gpu::Vendor::nvidia, "", 1}});
  }
  /// What `berth run --gpus device=…` does.
  Result<gpu::HeldLease> run(const std::string& name, const std::string& key) {
    gpu::Ledger ledger = TRY(gpu::Ledger::open(scratch_.path() + "/ledger", scratch_.path()));
    gpu::Lease lease;
    lease.container = lease.name = lease.group = name;
    lease.engine = "berth";
    return ledger.take(std::move(lease),
                       [&](const gpu::Holders& holders, gpu::Lease& wanted) -> Result<void> {
                         wanted.keys = {key};
                         auto occupancy = gpu::occupancy_of(holders, {wanted.group, wanted.keys});
                         if (const auto* one = gpu::find_obstacle(occupancy, key, false))
                           return make_error(Kind::busy, one->holder);
                         return {};
                       });
  }
  std::vector<std::string> troubles(const std::string& resource) {
    EXPECT_TRUE(cards_->look().ok());
    std::vector<std::string> all;
    for (const Device& one : cards_->devices(resource)) all.push_back(one.trouble);
    return all;
  }

  gpu::testing::Scratch scratch_;
  NullLog log_;
  std::optional<Cards> cards_;
};

TEST_F(CardsTest, a_gpu_that_one_name_has_given_is_taken_under_the_others) {
  auto given = cards_->allocate(kAny, {"GPU-a"}, 0ms);
  ASSERT_TRUE(given.ok());
  EXPECT_THAT(given->cdi_names, ElementsAre("berth.dev/gpu=GPU-a"));
  EXPECT_THAT(troubles(kAny), ElementsAre("", ""));
  EXPECT_THAT(troubles(kNvidia), ElementsAre(HasSubstr("a pod (berth.dev/gpu)"), ""));
  auto raced = cards_->allocate(kNvidia, {"GPU-a"}, 0ms);
  ASSERT_FALSE(raced.ok());
  EXPECT_THAT(to_line(raced.error()),
              HasSubstr("berth.dev/gpu.nvidia: GPU 0000:01:00.0 is held by"));
}

TEST_F(CardsTest, a_container_that_no_pod_owns_makes_the_gpu_unhealthy) {
  auto held = run("web", "0000:02:00.0");
  ASSERT_TRUE(held.ok());
  EXPECT_THAT(troubles(kAny), ElementsAre("", HasSubstr("container 'web'")));
  EXPECT_FALSE(cards_->allocate(kAny, {"GPU-b"}, 0ms).ok());
  { gpu::HeldLease ended = std::move(*held); }
  EXPECT_THAT(troubles(kAny), ElementsAre("", ""));
}

TEST_F(CardsTest, nobody_else_gets_a_gpu_of_a_pod) {
  ASSERT_TRUE(cards_->allocate(kAny, {"GPU-a"}, 0ms).ok());
  cards_->compare({{"default/p", kAny, {"GPU-a"}}}, 60s);
  auto refused = run("web", "0000:01:00.0");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(to_line(refused.error()), HasSubstr("pod default/p (berth.dev/gpu)"));
}

TEST_F(CardsTest, the_kubelet_gives_a_device_again_after_its_pod) {
  ASSERT_TRUE(cards_->allocate(kAny, {"GPU-a"}, 0ms).ok());
  EXPECT_TRUE(cards_->allocate(kAny, {"GPU-a", "GPU-b"}, 0ms).ok());
}

TEST_F(CardsTest, a_new_process_finds_what_the_old_one_has_given) {
  ASSERT_TRUE(cards_->allocate(kAny, {"GPU-a"}, 0ms).ok());
  cards_.reset();
  start();
  EXPECT_THAT(troubles(kNvidia), ElementsAre("", ""));
  cards_->compare({{"default/p", kAny, {"GPU-a"}}}, 60s);
  EXPECT_THAT(troubles(kNvidia), ElementsAre("held by pod default/p (berth.dev/gpu)", ""));
  EXPECT_FALSE(run("web", "0000:01:00.0").ok());
  cards_->compare({}, 60s);
  EXPECT_THAT(troubles(kNvidia), ElementsAre("", ""));
  EXPECT_FALSE(cards_->has_given());
}

TEST_F(CardsTest, what_was_just_given_may_not_be_in_the_list_yet) {
  ASSERT_TRUE(cards_->allocate(kAny, {"GPU-a"}, 0ms).ok());
  cards_->compare({}, 60s);
  EXPECT_TRUE(cards_->has_given());
  cards_->compare({}, 0s);
  EXPECT_FALSE(cards_->has_given());
}

TEST_F(CardsTest, shares_of_a_gpu_are_given_side_by_side_and_spread) {
  cards_->set(two_gpus(), {{"a.b/share", std::nullopt, "", 2}, {kAny, std::nullopt, "", 1}});
  EXPECT_TRUE(cards_->allocate("a.b/share", {"GPU-a::0"}, 0ms).ok());
  EXPECT_TRUE(cards_->allocate("a.b/share", {"GPU-a::1"}, 0ms).ok());
  EXPECT_FALSE(cards_->allocate(kAny, {"GPU-a"}, 0ms).ok());
  EXPECT_THAT(troubles("a.b/share"), ElementsAre("", "", "", ""));
  const std::vector<std::string> all{"GPU-a::0", "GPU-a::1", "GPU-b::0", "GPU-b::1"};
  EXPECT_THAT(cards_->prefer("a.b/share", all, {}, 2), ElementsAre("GPU-a::0", "GPU-b::0"));
  EXPECT_THAT(cards_->prefer("a.b/share", {"GPU-a::1", "GPU-b::0", "GPU-b::1"}, {}, 1),
              ElementsAre("GPU-b::0"));
  EXPECT_THAT(cards_->prefer("a.b/share", all, {"GPU-b::1"}, 3).size(), 3U);
}

TEST_F(CardsTest, what_is_taken_under_another_name_is_preferred_last) {
  cards_->set(two_gpus(), {{"a.b/share", std::nullopt, "", 2}, {kAny, std::nullopt, "", 1}});
  ASSERT_TRUE(cards_->allocate(kAny, {"GPU-a"}, 0ms).ok());
  // Before look(), and before the kubelet is told.
  EXPECT_THAT(cards_->prefer("a.b/share", {"GPU-a::0", "GPU-a::1", "GPU-b::0"}, {}, 1),
              ElementsAre("GPU-b::0"));
}

TEST_F(CardsTest, words_of_a_kubelet_that_mean_nothing_are_refused) {
  EXPECT_FALSE(cards_->allocate(kAny, {"GPU-z"}, 0ms).ok());
  EXPECT_FALSE(cards_->allocate("x.y/z", {"GPU-a"}, 0ms).ok());
  EXPECT_THAT(cards_->devices("x.y/z"), IsEmpty());
  std::vector<std::string> many(10000, "GPU-z");
  EXPECT_THAT(cards_->prefer(kAny, many, {}, 1U << 30), IsEmpty());
  EXPECT_FALSE(cards_->allocate(kAny, many, 0ms).ok());
}

}  // namespace
}  // namespace berth::kube
