// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm/options.hpp"

namespace berth::slurm {
namespace {

using ::testing::ElementsAre;

Mount one(std::string_view text) {
  auto mounts = parse_mounts(text, "/home/ann");
  EXPECT_TRUE(mounts.ok()) << to_line(mounts.error());
  return mounts.ok() && mounts->size() == 1 ? mounts->front() : Mount{};
}

std::string refusal(std::string_view text) {
  auto mounts = parse_mounts(text, "/home/ann");
  return mounts.ok() ? "taken" : mounts.error().what;
}

TEST(SlurmMounts, a_source_and_a_target) {
  Mount mount = one("/data:/mnt");
  EXPECT_EQ(mount.source, "/data");
  EXPECT_EQ(mount.destination, "/mnt");
  EXPECT_FALSE(mount.read_only);
  EXPECT_TRUE(mount.recursive);
}

TEST(SlurmMounts, one_path_is_the_same_place) {
  EXPECT_EQ(one("/data").destination, "/data");
}

TEST(SlurmMounts, a_dot_is_the_working_directory_of_the_step) {
  EXPECT_EQ(one("./x y:/mnt").source, "/home/ann/./x y");
  EXPECT_EQ(one(".:/mnt").source, "/home/ann/.");
}

TEST(SlurmMounts, flags_are_separated_by_plus) {
  Mount mount = one("/data:/mnt:ro+rslave+bind");
  EXPECT_TRUE(mount.read_only);
  EXPECT_FALSE(mount.recursive);
  EXPECT_EQ(mount.propagation, "rslave");
  EXPECT_THAT(one("/data:/mnt:nosuid+ro+nodev").options, ElementsAre("nosuid", "nodev"));
  EXPECT_EQ(refusal("/data:/mnt:ro+frob"),
            "--container-mounts: '/data:/mnt:ro+frob': unknown flag 'frob'");
}

TEST(SlurmMounts, tmpfs_takes_its_own_options) {
  Mount mount = one("tmpfs:/scratch:size=1g+huge=within_size");
  EXPECT_EQ(mount.kind, Mount::Kind::tmpfs);
  EXPECT_THAT(mount.options, ElementsAre("size=1g", "huge=within_size"));
}

TEST(SlurmMounts, umount_takes_a_place_away) {
  Mount mount = one("umount:/root");
  EXPECT_EQ(mount.kind, Mount::Kind::none);
  EXPECT_EQ(mount.destination, "/root");
}

TEST(SlurmMounts, what_is_no_path_is_refused) {
  EXPECT_NE(refusal(":"), "taken");
  EXPECT_NE(refusal("/tmp:"), "taken");
  EXPECT_NE(refusal("devpts:/x:ro"), "taken");
  EXPECT_NE(refusal("/tmp:mnt:ro"), "taken");
  EXPECT_NE(refusal("/a:/b:ro:x"), "taken");
  EXPECT_NE(refusal("/a,,/b"), "taken");
  EXPECT_EQ(refusal("/home:/x/../home"),
            "--container-mounts: '/home:/x/../home': the target has '..' in it");
}

}  // namespace
}  // namespace berth::slurm
