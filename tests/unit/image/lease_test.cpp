// SPDX-License-Identifier: Apache-2.0
#include "image/lease.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "image/staging.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"

namespace berth::image {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Leases expire after a second.
class LeaseTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("BERTH_LEASE_SECONDS", "1", 1);
    char name[] = "/tmp/berth-tests-lease-XXXXXX";
    path_ = ::mkdtemp(name);
    fs::create_directory(path_ + "/tmp");
    root_ = *sys::open_at(sys::cwd(), path_, O_RDONLY | O_DIRECTORY);
  }
  void TearDown() override {
    ::unsetenv("BERTH_LEASE_SECONDS");
    fs::remove_all(path_);
  }

  std::shared_ptr<Lease> begin(const std::string& name, Lease::Beat beat,
                               const std::string& line = lease_line()) {
    EXPECT_TRUE(sys::write_file(root_, "tmp/" + name, line, 0600).ok());
    return *Lease::begin(root_, name, beat);
  }
  std::string owner(const std::string& mark) {
    auto target = sys::read_link(root_, "tmp/" + mark);
    return target.ok() ? *target : "";
  }
  std::string left() {
    std::string names;
    for (const auto& entry : fs::directory_iterator(path_ + "/tmp")) {
      names += entry.path().filename().string() + " ";
    }
    return names;
  }

  std::string path_;
  sys::Fd root_;
};

TEST_F(LeaseTest, a_mark_is_of_one_at_a_time) {
  auto one = begin("pins-1", Lease::Beat::background);
  auto two = begin("pins-2", Lease::Beat::background);
  ASSERT_TRUE(one->take("lease-a").ok());
  ASSERT_TRUE(two->take("lease-b").ok());
  int asked = 0;
  auto taken = two->take("lease-a", [&] { return ++asked == 3; });
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().kind, Kind::interrupted);
  two->drop("lease-a");
  EXPECT_EQ(owner("lease-a"), "pins-1");
  one->drop("lease-a");
  EXPECT_TRUE(two->take("lease-a").ok());
  EXPECT_EQ(owner("lease-a"), "pins-2");
}

TEST_F(LeaseTest, who_lives_keeps_a_mark_for_longer_than_leases_last) {
  auto one = begin("pins-1", Lease::Beat::background);
  auto two = begin("pins-2", Lease::Beat::background);
  ASSERT_TRUE(one->take("lease-a").ok());
  auto begun = Clock::now();
  auto taken = two->take("lease-a", [&] { return Clock::now() - begun > milliseconds(2500); });
  EXPECT_FALSE(taken.ok());
  EXPECT_EQ(owner("lease-a"), "pins-1");
}

TEST_F(LeaseTest, a_mark_of_who_is_silent_is_taken_when_its_lease_has_expired) {
  auto one = begin("pins-1", Lease::Beat::on_request);
  auto two = begin("pins-2", Lease::Beat::background);
  ASSERT_TRUE(one->take("lease-a").ok());
  auto begun = Clock::now();
  EXPECT_TRUE(two->take("lease-a").ok());
  EXPECT_GE(Clock::now() - begun, milliseconds(950));
  EXPECT_EQ(owner("lease-a"), "pins-2");
  one->drop("lease-a");
  EXPECT_EQ(owner("lease-a"), "pins-2");
  EXPECT_FALSE(one->is_lost());
  EXPECT_EQ(left().find("trash-"), std::string::npos);
}

TEST_F(LeaseTest, a_mark_of_who_has_gone_is_taken_at_once) {
  ASSERT_TRUE(sys::make_symlink("pins-1", root_, "tmp/lease-a").ok());
  auto two = begin("pins-2", Lease::Beat::background);
  auto begun = Clock::now();
  EXPECT_TRUE(two->take("lease-a").ok());
  EXPECT_LT(Clock::now() - begun, milliseconds(500));
}

TEST_F(LeaseTest, a_mark_that_leads_out_of_the_store_is_nobodys) {
  ASSERT_TRUE(sys::make_symlink("../../etc/passwd", root_, "tmp/lease-a").ok());
  auto one = begin("pins-1", Lease::Beat::background);
  EXPECT_TRUE(one->take("lease-a").ok());
}

TEST_F(LeaseTest, of_many_who_find_a_mark_expired_each_has_it_once) {
  ASSERT_TRUE(sys::make_symlink("pins-0", root_, "tmp/lease-a").ok());
  std::atomic<int> inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 1; i <= 6; ++i) {
    auto lease = begin("pins-" + std::to_string(i), Lease::Beat::background);
    threads.emplace_back([&, lease] {
      EXPECT_TRUE(lease->take("lease-a").ok());
      most = std::max<int>(most, ++inside);
      std::this_thread::sleep_for(milliseconds(5));
      --inside;
      lease->drop("lease-a");
    });
  }
  for (auto& thread : threads) thread.join();
  // Two may work on one thing for a moment; nobody waits for ever, and nothing stays.
  EXPECT_LE(most, 2);
  EXPECT_EQ(owner("lease-a"), "");
}

TEST_F(LeaseTest, who_is_late_may_not_go_on) {
  auto one = begin("holder-1", Lease::Beat::on_request);
  EXPECT_TRUE(one->renew().ok());
  std::this_thread::sleep_for(milliseconds(600));
  auto late = one->renew();
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().kind, Kind::busy);
}

TEST_F(LeaseTest, who_was_taken_for_dead_sees_it) {
  auto one = begin("pins-1", Lease::Beat::background);
  EXPECT_FALSE(one->is_lost());
  fs::remove(path_ + "/tmp/pins-1");
  EXPECT_TRUE(one->is_lost());
}

TEST_F(LeaseTest, a_lease_says_which_machine_it_is_of) {
  EXPECT_FALSE(is_of_other_machine(lease_line()));
  EXPECT_TRUE(is_of_other_machine("lease 0123 host 5\nblob aa\n"));
  EXPECT_FALSE(is_of_other_machine("blob aa\n"));
  EXPECT_FALSE(is_of_other_machine(""));
}

TEST_F(LeaseTest, a_sweep_leaves_what_another_machine_may_need) {
  begin("pins-1", Lease::Beat::on_request, "lease 0123 host 5\n");
  fs::create_directories(path_ + "/tmp/stage-1-ab/fs");
  ASSERT_TRUE(sys::make_symlink("pins-1", root_, "tmp/lease-a").ok());
  begin("pins-2", Lease::Beat::on_request);
  fs::create_directories(path_ + "/tmp/stage-2-ab/fs");
  fs::create_directories(path_ + "/tmp/stage-3-ab/fs");
  ASSERT_TRUE(sys::make_symlink("pins-3", root_, "tmp/lease-b").ok());
  sweep(root_);
  for (const char* name : {"pins-1", "stage-1-ab", "lease-a"}) {
    EXPECT_TRUE(fs::exists(path_ + "/tmp/" + name)) << name;
  }
  for (const char* name : {"pins-2", "stage-3-ab"}) {
    EXPECT_FALSE(fs::exists(path_ + "/tmp/" + name)) << name;
  }
  EXPECT_EQ(owner("lease-b"), "");
  fs::remove(path_ + "/tmp/pins-1");
  sweep(root_);
  EXPECT_EQ(left(), "");
}

TEST_F(LeaseTest, a_sweep_leaves_what_a_machine_may_be_about_to_say_is_its_own) {
  ::setenv("BERTH_STORE_LEASES", "1", 1);
  EXPECT_TRUE(sys::write_file(root_, "tmp/pins-new", "", 0600).ok());
  EXPECT_TRUE(sys::write_file(root_, "tmp/pins-old", "", 0600).ok());
  EXPECT_TRUE(
      sys::set_modified(*sys::hold_entry(root_, "tmp/pins-old"), {1'000'000'000, 0}, "pins-old")
          .ok());
  sweep(root_);
  ::unsetenv("BERTH_STORE_LEASES");
  EXPECT_TRUE(fs::exists(path_ + "/tmp/pins-new"));
  EXPECT_FALSE(fs::exists(path_ + "/tmp/pins-old"));
  sweep(root_);  // locks are seen where there are no leases
  EXPECT_FALSE(fs::exists(path_ + "/tmp/pins-new"));
}

TEST_F(LeaseTest, who_has_waited_for_long_may_go_on) {
  auto dead = begin("dead", Lease::Beat::on_request);
  ASSERT_TRUE(dead->take("lease-x").ok());
  auto waits = begin("waits", Lease::Beat::on_request);
  ASSERT_TRUE(waits->take("lease-x").ok());
  EXPECT_TRUE(waits->renew().ok());
}

TEST_F(LeaseTest, who_was_taken_for_dead_may_not_go_on) {
  auto lease = begin("mine", Lease::Beat::on_request);
  ASSERT_TRUE(lease->renew().ok());
  EXPECT_TRUE(sys::remove_entry(root_, "tmp/mine").ok());
  EXPECT_EQ(lease->renew().error().kind, Kind::busy);
}

}  // namespace
}  // namespace berth::image
