// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/processes.hpp"

#include <gtest/gtest.h>

#include "unit/gpu/ledger/seen.hpp"

namespace berth::gpu {
namespace {

std::string owner(int64_t pid, const std::vector<KnownLease>& leases, const ProcessView& view) {
  std::vector<const KnownLease*> all;
  for (const KnownLease& one : leases) all.push_back(&one);
  const KnownLease* found = lease_of(pid, all, view);
  return found == nullptr ? "nobody" : found->lease.name;
}

TEST(LeaseOf, is_that_of_the_cgroup_a_process_is_in) {
  Processes all;
  all.add(50, 1, kUser, {"/berth/one/inner"});
  all.add(51, 1, kUser, {"/berth/onerous"});
  std::vector<KnownLease> leases = {known_lease("root", 11, "/"),
                                    known_lease("one", 10, "berth/one")};
  EXPECT_EQ(owner(50, leases, all.view()), "one");
  EXPECT_EQ(owner(51, leases, all.view()), "nobody");
}

TEST(LeaseOf, is_that_of_an_ancestor) {
  Processes all;
  all.add(52, 51, kUser);
  all.add(51, 50, kUser);
  all.add(50, 1, kUser);
  EXPECT_EQ(owner(52, {known_lease("one", 50)}, all.view()), "one");
  EXPECT_EQ(owner(52, {known_lease("one", 0), known_lease("other", 49)}, all.view()), "nobody");
}

TEST(LeaseOf, of_another_pid_namespace_or_another_life_of_the_number_is_nobodys) {
  Processes all;
  all.add(50, 1, kUser);
  EXPECT_EQ(owner(50, {known_lease("one", 50)}, all.view(kSpace + 1)), "nobody");
  KnownLease before = known_lease("one", 50);
  before.lease.life.start_time = 3;
  EXPECT_EQ(owner(50, {before}, all.view()), "nobody");
}

TEST(LeaseOf, a_user_is_believed_of_his_own_processes_alone) {
  Processes all;
  all.add(40, 1, kUser);
  all.add(50, 40, kFurther, {"/other"});
  all.add(51, 50, kFurther, {"/other"});
  EXPECT_EQ(owner(51, {known_lease("his", 50, "", kUser)}, all.view()), "his");
  EXPECT_EQ(owner(51, {known_lease("claimed", 50, "", kStranger)}, all.view()), "nobody");
  EXPECT_EQ(owner(51, {known_lease("claimed", 9, "other", kStranger)}, all.view()), "nobody");
}

TEST(LeaseOf, of_an_mps_server_is_that_of_who_computes_through_it) {
  Processes all;
  all.add(40, 1, kUser);
  all.add(50, 40, kUser);
  all.name(50, "nvidia-cuda-mps");
  all.add(51, 40, kFurther);
  all.name(51, "nvidia-cuda-mps");
  KnownLease through = known_lease("through", 9, "", kUser);
  through.lease.mps = MpsUse{"share", 25, {}};
  EXPECT_EQ(owner(50, {known_lease("beside", 9, "", kUser), through}, all.view()), "through");
  EXPECT_EQ(owner(51, {through}, all.view()), "through");
  EXPECT_EQ(owner(40, {through}, all.view()), "nobody");
  through.user = kStranger;
  EXPECT_EQ(owner(50, {through}, all.view()), "nobody");
}

TEST(LeaseOf, of_a_process_that_is_hidden_or_its_own_ancestor_is_nobodys) {
  Processes all;
  all.add(60, 61, kUser);
  all.add(61, 60, kUser);
  EXPECT_EQ(owner(60, {known_lease("one", 50)}, all.view()), "nobody");
  EXPECT_EQ(owner(99, {known_lease("one", 50)}, all.view()), "nobody");
}

}  // namespace
}  // namespace berth::gpu
