// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/cgroup.hpp"

namespace berth::plan {
namespace {

oci::Spec with_everything() {
  oci::Spec spec;
  spec.process.emplace();
  spec.linux_.namespaces = {{"mount", ""}, {"cgroup", ""}, {"user", ""}};
  spec.linux_.uid_mappings = {{0, 100000, 1000}, {1000, 5, 1}};
  spec.mounts.resize(1);
  spec.mounts[0].destination = "/sys/fs/cgroup";
  spec.mounts[0].type = "cgroup";
  spec.mounts[0].options = {"nosuid"};
  return spec;
}

TEST(CgroupOwner, is_who_the_process_is_outside) {
  auto spec = with_everything();
  EXPECT_EQ(cgroup_owner(spec), 100000u);
  spec.process->user.uid = 7;
  EXPECT_EQ(cgroup_owner(spec), 100007u);
  spec.process->user.uid = 1000;
  EXPECT_EQ(cgroup_owner(spec), 5u);
  spec.process->user.uid = 1001;
  EXPECT_EQ(cgroup_owner(spec), std::nullopt) << "nobody outside";
}

TEST(CgroupOwner, stays_who_it_is_where_the_container_cannot_use_it) {
  auto spec = with_everything();
  spec.mounts[0].options = {"ro"};
  EXPECT_EQ(cgroup_owner(spec), std::nullopt) << "read-only";
  spec = with_everything();
  spec.mounts.clear();
  EXPECT_EQ(cgroup_owner(spec), std::nullopt) << "not mounted";
  spec = with_everything();
  spec.mounts[0].destination = "/mnt";
  EXPECT_EQ(cgroup_owner(spec), std::nullopt) << "mounted elsewhere";
}

TEST(CgroupOwner, stays_who_it_is_without_namespaces_of_its_own) {
  for (const char* type : {"cgroup", "user"}) {
    auto spec = with_everything();
    std::erase_if(spec.linux_.namespaces, [&](const auto& space) { return space.type == type; });
    EXPECT_EQ(cgroup_owner(spec), std::nullopt) << type;
    spec.linux_.namespaces.push_back({type, "/proc/1/ns/x"});
    EXPECT_EQ(cgroup_owner(spec), std::nullopt) << "joined " << type;
  }
}

}  // namespace
}  // namespace berth::plan
