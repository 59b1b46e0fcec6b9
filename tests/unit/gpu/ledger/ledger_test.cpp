// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/ledger.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../driver_tree.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "unit/gpu/ledger/seen.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Keys = std::vector<std::string>;

Lease lease(const std::string& container, bool exclusive = false, const std::string& group = "") {
  Lease one;
  one.container = container;
  one.engine = "berth";
  one.group = group.empty() ? container : group;
  one.exclusive = exclusive;
  return one;
}

/// Takes exactly these, as --gpus device= does.
Choose these(const Keys& keys, const Lease& asks) {
  return [=](const Holders& holders, Lease& lease) -> Result<void> {
    Occupancy occupancy = occupancy_of(holders, {asks.group, keys});
    for (const std::string& key : keys) {
      const Holding* obstacle = find_obstacle(occupancy, key, asks.exclusive);
      if (obstacle != nullptr) return make_error(Kind::busy, "held by " + obstacle->holder);
    }
    lease.keys = keys;
    return {};
  };
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    auto opened = Ledger::open(path_, scratch_.path());
    if (opened.ok()) ledger_.emplace(std::move(*opened));
  }
  Result<HeldLease> take(const std::string& container, const Keys& keys, bool exclusive = false,
                         const std::string& group = "") {
    Lease asks = lease(container, exclusive, group);
    return ledger_->take(asks, these(keys, asks));
  }
  Keys containers() {
    Keys out;
    auto holders = ledger_->look();
    if (!holders.ok()) return {to_line(holders.error())};
    for (const KnownLease& one : holders->leases) out.push_back(one.lease.container);
    return out;
  }
  Keys files() {
    Keys out;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().filename() != "lock") out.push_back(entry.path().filename());
    }
    return out;
  }
  Ticket ticket(const std::string& container, const Keys& keys, uint64_t count, bool exclusive) {
    return {container, "", container, keys, count, exclusive, 0};
  }

  testing::Scratch scratch_;
  std::string path_ = scratch_.path() + "/ledger";
  std::optional<Ledger> ledger_;
};

TEST_F(LedgerTest, is_made_where_everybody_can_write_and_nobody_can_take_away) {
  ASSERT_TRUE(ledger_);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, ::geteuid() == 0 ? 01777u : 0700u);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LedgerTest, shares_a_gpu_with_everybody_who_shares) {
  auto a = take("a", {kZero}), b = take("b", {kZero, kOne});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_THAT(containers(), ::testing::UnorderedElementsAre("a", "b"));
}

TEST_F(LedgerTest, gives_nobody_what_somebody_keeps_to_himself) {
  auto a = take("aaaaaaaaaaaaaaaa", {kZero}, true);
  ASSERT_TRUE(a.ok());
  auto b = take("b", {kZero});
  ASSERT_FALSE(b.ok());
  EXPECT_EQ(b.error().kind, Kind::busy);
  EXPECT_THAT(to_line(b.error()), ::testing::HasSubstr("container 'aaaaaaaaaaaa' of"));
  EXPECT_TRUE(take("b", {kOne}, true).ok());
}

TEST_F(LedgerTest, keeps_nothing_to_himself_for_who_comes_after_others) {
  auto a = take("a", {kZero});
  EXPECT_FALSE(take("b", {kZero}, true).ok());
}

TEST_F(LedgerTest, shares_what_is_exclusive_in_the_group) {
  auto a = take("a", {kZero}, true);
  EXPECT_TRUE(take("b", {kZero}, true, "a").ok());
  EXPECT_FALSE(take("c", {kZero}, true, "c").ok());
}

TEST_F(LedgerTest, frees_what_is_dropped_and_leaves_no_file) {
  { auto a = take("a", {kZero}, true); }
  EXPECT_THAT(containers(), IsEmpty());
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LedgerTest, keeps_what_was_left_as_long_as_its_process_lives) {
  sys::SpawnOptions sleep;
  sleep.program = "/bin/sleep";
  sleep.args = {"sleep", "60"};
  auto child = sys::spawn(sleep);
  ASSERT_TRUE(child.ok());
  {
    auto a = take("a", {kZero}, true);
    auto here = look_around();
    auto life = life_of(child->pid(), "", *here);
    ASSERT_TRUE(ledger_->set_life(*a, *life).ok());
    a->leave();
  }
  EXPECT_THAT(containers(), ElementsAre("a"));
  ASSERT_EQ(::kill(child->pid(), SIGKILL), 0);
  ASSERT_TRUE(*sys::await_end(child->pidfd(), 5000ms));  // and nobody has reaped it yet
  EXPECT_THAT(containers(), IsEmpty());
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LedgerTest, does_not_take_another_process_of_that_number_for_the_container) {
  auto here = look_around();
  auto life = life_of(::getpid(), "", *here);
  ASSERT_TRUE(life.ok());
  EXPECT_TRUE(is_alive(*life, *here));
  Life other = *life;
  other.start_time += 1;
  EXPECT_FALSE(is_alive(other, *here));
  other = *life;
  other.boot = "before";
  EXPECT_FALSE(is_alive(other, *here));
  other = *life;
  other.pid_space += 1;
  EXPECT_TRUE(is_alive(other, *here)) << "nobody can tell";
}

TEST_F(LedgerTest, keeps_what_a_killed_engine_leaves_to_the_next_only_while_somebody_holds_it) {
  auto a = take("a", {kZero}, true);
  std::string file = std::filesystem::path(a->path()).filename();
  auto again = ledger_->hold_again(file, a->lease());
  ASSERT_TRUE(again.ok());
  a->leave();
  EXPECT_THAT(containers(), ElementsAre("a"));
  again->leave();
  EXPECT_THAT(containers(), IsEmpty());
}

TEST_F(LedgerTest, gives_a_lost_lease_again_unless_somebody_has_it_by_now) {
  Lease lost;
  {
    auto a = take("a", {kZero}, true);
    lost = a->lease();
  }
  {
    auto again = ledger_->hold_again("lease-0123", lost);
    ASSERT_TRUE(again.ok()) << to_line(again.error());
    EXPECT_THAT(again->lease().keys, ElementsAre(kZero));
  }
  auto b = take("b", {kZero});
  auto late = ledger_->hold_again("lease-0123", lost);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().kind, Kind::busy);
  EXPECT_FALSE(ledger_->hold_again("../x", lost).ok());
}

// A reader of another user sees that it is dead, and may not remove it.
TEST_F(LedgerTest, does_not_take_up_a_dead_lease_whose_gpu_somebody_has_by_now) {
  auto a = take("a", {kZero}, true);
  Lease lost = a->lease();
  std::string file = std::filesystem::path(a->path()).filename();
  a->leave();
  auto b = take("b", {kZero}, true);
  ASSERT_TRUE(b.ok());
  std::ofstream(path_ + "/" + file) << *record_text(lost);
  auto again = ledger_->hold_again(file, lost);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, Kind::busy);
}

TEST_F(LedgerTest, does_not_wait_for_who_locks_a_record_of_ours) {
  auto a = take("a", {kZero}, true);
  std::string file = std::filesystem::path(a->path()).filename();
  Lease lease = a->lease();
  auto stranger = sys::open_at(sys::cwd(), path_ + "/" + file, O_RDONLY);
  a->leave();
  ASSERT_TRUE(*sys::try_lock(*stranger, sys::LockMode::exclusive, file));
  auto again = ledger_->hold_again(file, lease);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, Kind::busy);
}

TEST_F(LedgerTest, counts_numbers_of_those_alone_who_have_counted) {
  std::string name = "wait-18446744073709551615";
  std::ofstream(path_ + "/" + name) << *record_text(ticket("x", {kZero}, 1, true));
  auto file = sys::open_at(sys::cwd(), path_ + "/" + name, O_RDONLY);
  ASSERT_TRUE(*sys::try_lock(*file, sys::LockMode::shared, name));
  auto holders = ledger_->look();
  ASSERT_TRUE(holders.ok());
  EXPECT_THAT(holders->queue, IsEmpty());
}

TEST_F(LedgerTest, takes_a_group_for_one_only_within_one_user) {
  Occupancy occupancy;
  occupancy.held.push_back({kZero, "somebody", "g", true, 1000});
  occupancy.group = "g";
  occupancy.user = 1001;
  EXPECT_NE(find_obstacle(occupancy, kZero, true), nullptr);
  occupancy.user = 1000;
  EXPECT_EQ(find_obstacle(occupancy, kZero, true), nullptr);
  occupancy.user = 0;
  occupancy.all_users = true;
  EXPECT_EQ(find_obstacle(occupancy, kZero, true), nullptr);
}

TEST_F(LedgerTest, passes_over_what_is_no_lease) {
  std::ofstream(path_ + "/lease-junk") << "{";
  std::ofstream(path_ + "/lease-long") << std::string(10000, ' ');
  std::ofstream(path_ + "/wait-00000000000000000001") << "{}";
  std::filesystem::create_directory(path_ + "/lease-directory");
  std::filesystem::create_symlink("/etc/passwd", path_ + "/lease-link");
  ASSERT_EQ(::mkfifo((path_ + "/lease-fifo").c_str(), 0666), 0);
  EXPECT_THAT(containers(), IsEmpty());
}

TEST_F(LedgerTest, refuses_a_ledger_that_others_can_replace) {
  ASSERT_EQ(::chmod(path_.c_str(), 0777), 0);
  auto opened = Ledger::open(path_, scratch_.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, Kind::denied);
}

TEST_F(LedgerTest, refuses_a_ledger_of_another_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(path_.c_str(), 1234, 1234), 0);
  auto opened = Ledger::open(path_, scratch_.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(to_line(opened.error()), "use the GPU ledger '" + path_ +
                                         "': it is user 1234's; try: rm -r " + path_ +
                                         " as root: it is created again");
}

TEST_F(LedgerTest, holds_the_old_and_the_new_until_the_change_is_made) {
  auto a = take("a", {kZero}, true);
  auto other = [](const Holders& others, Lease& changed) -> Result<void> {
    EXPECT_THAT(others.leases, SizeIs(1));
    changed.keys = {kOne};
    return {};
  };
  ASSERT_TRUE(ledger_->widen(*a, other).ok());
  EXPECT_FALSE(take("b", {kZero}, true).ok());
  EXPECT_FALSE(take("b", {kOne}, true).ok());
  ASSERT_TRUE(ledger_->finish(*a, Ledger::Finish::changed).ok());
  EXPECT_FALSE(take("c", {kOne}, true).ok());
  auto b = take("b", {kZero}, true);
  EXPECT_TRUE(b.ok());
}

TEST_F(LedgerTest, gives_back_what_a_change_that_failed_would_have_had) {
  auto a = take("a", {kZero}, true);
  auto other = [](const Holders&, Lease& changed) -> Result<void> {
    changed.keys = {kOne};
    return {};
  };
  Here here = look_around().value();
  ASSERT_TRUE(ledger_->set_life(*a, life_of(::getpid(), "", here).value()).ok());
  {
    auto again = ledger_->hold_again(a->file(), a->lease());
    ASSERT_TRUE(again.ok());
    ASSERT_TRUE(ledger_->widen(*again, other).ok());
    EXPECT_FALSE(take("b", {kOne}, true).ok());
  }  // nobody has settled it
  EXPECT_TRUE(take("b", {kOne}, true).ok());
  EXPECT_FALSE(take("c", {kZero}, true).ok());
}

TEST_F(LedgerTest, lets_who_waits_have_what_is_given_back) {
  auto a = std::make_optional(take("a", {kZero}, true));
  bool told = false;
  std::thread owner([&] {
    std::this_thread::sleep_for(50ms);
    a.reset();
  });
  Ledger::Patience patience{10s, [&](const Error&) { told = true; }};
  Lease asks = lease("b", true);
  auto b =
      ledger_->take_in_turn(asks, ticket("b", {kZero}, 1, true), these({kZero}, asks), patience);
  owner.join();
  ASSERT_TRUE(b.ok()) << to_line(b.error());
  EXPECT_TRUE(told);
  EXPECT_THAT(containers(), ElementsAre("b"));
  EXPECT_THAT(files(), SizeIs(1));
}

TEST_F(LedgerTest, says_who_has_it_when_the_wait_is_over) {
  auto a = take("a", {kZero}, true);
  Lease asks = lease("b", true);
  auto b = ledger_->take_in_turn(asks, ticket("b", {kZero}, 1, true), these({kZero}, asks), {30ms});
  ASSERT_FALSE(b.ok());
  EXPECT_EQ(b.error().kind, Kind::busy);
  EXPECT_THAT(files(), SizeIs(1)) << "the place in the queue has gone";
}

TEST_F(LedgerTest, waits_behind_who_was_killed_and_whose_file_stays) {
  const Keys kOthers = {"wait-00000000000000000001", "wait-00000000000000000002"};
  for (const std::string& name : kOthers) {  // as another user's, it cannot be removed
    std::filesystem::create_directories(path_ + "/" + name + "/x");
  }
  auto a = std::make_optional(take("a", {kZero}, true));
  std::thread owner([&] {
    std::this_thread::sleep_for(50ms);
    a.reset();
  });
  Lease asks = lease("b", true);
  auto b = ledger_->take_in_turn(asks, ticket("b", {kZero}, 1, true), these({kZero}, asks), {10s});
  owner.join();
  EXPECT_TRUE(b.ok()) << to_line(b.error());
}

TEST_F(LedgerTest, waits_without_a_place_where_the_last_one_is_taken) {
  std::string name = "wait-00009007199254740992";
  std::ofstream(path_ + "/" + name) << *record_text(ticket("x", {kOne}, 1, true));
  auto file = sys::open_at(sys::cwd(), path_ + "/" + name, O_RDONLY);
  ASSERT_TRUE(*sys::try_lock(*file, sys::LockMode::shared, name));
  auto a = take("a", {kZero}, true);
  Lease asks = lease("b", true);
  size_t places = 0;
  auto look = [&](const Error&) {
    Keys all = files();
    places = std::count_if(all.begin(), all.end(),
                           [](const std::string& one) { return one.starts_with("wait-"); });
  };
  auto b = ledger_->take_in_turn(asks, ticket("b", {kZero}, 1, true), these({kZero}, asks),
                                 {30ms, look});
  ASSERT_FALSE(b.ok());
  EXPECT_EQ(b.error().kind, Kind::busy) << to_line(b.error());
  EXPECT_EQ(places, 1U) << "one that nobody would count";
}

TEST_F(LedgerTest, keeps_what_is_dropped_while_somebody_else_holds_it) {
  auto a = take("a", {kZero}, true);
  ASSERT_TRUE(a.ok());
  auto other = sys::open_at(sys::cwd(), a->path(), O_RDONLY);
  ASSERT_TRUE(*sys::try_lock(*other, sys::LockMode::shared, "a"));
  *a = HeldLease();
  EXPECT_THAT(containers(), ElementsAre("a"));
  EXPECT_FALSE(take("b", {kZero}, true).ok());
}

TEST_F(LedgerTest, serves_nobody_before_who_waits_for_the_same) {
  Holders holders;
  holders.leases.push_back({lease("a", true), 0, "lease-a"});
  holders.leases[0].lease.keys = {kZero};
  holders.queue.push_back({ticket("first", {kZero, kOne}, 2, true), 0, "wait-1", 1});
  Occupancy occupancy = occupancy_of(holders, {"late", {kOne}});
  const Holding* obstacle = find_obstacle(occupancy, kOne, true);
  ASSERT_NE(obstacle, nullptr);
  EXPECT_THAT(obstacle->holder, ::testing::EndsWith("which waits first"));
  EXPECT_EQ(find_obstacle(occupancy_of(holders, {"first", {kOne}, 1}), kOne, true), nullptr);
}

TEST_F(LedgerTest, keeps_what_somebody_has_for_him_and_not_for_who_waits) {
  Holders holders;
  holders.leases.push_back({lease("a", true), ::geteuid(), "lease-a"});
  holders.leases[0].lease.keys = {kZero, kOne};
  holders.queue.push_back({ticket("first", {kZero, kOne}, 1, true), ::geteuid(), "wait-1", 1});
  Asking asking{"a", {kZero, kOne}};
  asking.own_lease = "lease-a";
  Occupancy occupancy = occupancy_of(holders, asking);
  EXPECT_EQ(find_obstacle(occupancy, kZero, true), nullptr);
  EXPECT_EQ(find_obstacle(occupancy, kOne, true), nullptr);
}

TEST_F(LedgerTest, keeps_for_who_waits_what_he_can_take_and_no_outsider_has) {
  Holders holders;
  holders.queue.push_back({ticket("first", {kZero, kOne}, 1, true), ::geteuid(), "wait-1", 1});
  Asking asking{"late", {kOne}};
  asking.outside.push_back({kZero, "process 5", "", false, 0});
  EXPECT_NE(find_obstacle(occupancy_of(holders, asking), kOne, true), nullptr);
}

TEST_F(LedgerTest, lets_pass_who_takes_nothing_from_those_before) {
  Holders holders;
  holders.queue.push_back({ticket("first", {kZero, kOne}, 1, true), ::geteuid(), "wait-1", 1});
  Occupancy occupancy = occupancy_of(holders, {"late", {kOne}});
  EXPECT_EQ(find_obstacle(occupancy, kOne, true), nullptr);
  EXPECT_NE(find_obstacle(occupancy, kZero, true), nullptr);
}

TEST_F(LedgerTest, never_gives_one_gpu_twice_and_keeps_one_for_everybody_who_came_before) {
  constexpr int kTenants = 64;
  const Keys gpus = {kZero, kOne};
  std::atomic<int> inside{0}, most{0}, served{0}, waited{0}, overtaken{0};
  std::vector<std::thread> tenants;
  for (int i = 0; i < kTenants; ++i) {
    tenants.emplace_back([&, i] {
      Lease asks = lease("t" + std::to_string(i), true);
      auto choose = [&](const Holders& ahead, Lease& lease) -> Result<void> {
        Occupancy occupancy = occupancy_of(ahead, {asks.group, gpus});
        auto free = [&](const std::string& key) {
          return find_obstacle(occupancy, key, true) == nullptr;
        };
        auto found = std::find_if(gpus.begin(), gpus.end(), free);
        waited += found == gpus.end() ? 1 : 0;
        if (found == gpus.end()) return make_error(Kind::busy, "held");
        size_t unheld = gpus.size() - ahead.leases.size();
        // Who was served a moment ago has his place for another moment.
        auto waits = [&](const KnownTicket& one) {
          return std::none_of(ahead.leases.begin(), ahead.leases.end(), [&](const auto& known) {
            return known.lease.container == one.ticket.container;
          });
        };
        auto before = std::count_if(ahead.queue.begin(), ahead.queue.end(), waits);
        if (unheld <= static_cast<size_t>(before)) ++overtaken;
        lease.keys = {*found};
        return {};
      };
      auto held = ledger_->take_in_turn(asks, ticket(asks.container, gpus, 1, true), choose, {30s});
      if (!held.ok()) return;
      int now = ++inside;
      if (now > most) most = now;
      std::this_thread::sleep_for(2ms);
      --inside;
      ++served;
    });
  }
  for (std::thread& tenant : tenants) tenant.join();
  EXPECT_EQ(served, kTenants);
  EXPECT_LE(most, 2);
  EXPECT_GT(waited, 0);
  EXPECT_EQ(overtaken, 0);
  EXPECT_THAT(files(), IsEmpty());
}

}  // namespace
}  // namespace berth::gpu
