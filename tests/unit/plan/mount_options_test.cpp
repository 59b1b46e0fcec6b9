// SPDX-License-Identifier: Apache-2.0
#include "plan/mount_options.hpp"

#include <gtest/gtest.h>
#include <linux/mount.h>

namespace berth::plan {
namespace {

MountOptions parsed(const std::vector<std::string>& options) {
  return parse_mount_options(options);
}

TEST(MountOptions, are_sorted_into_flags_binds_and_data) {
  MountOptions options = parsed({"rbind", "ro", "nosuid", "rslave", "size=1k", "newinstance"});
  EXPECT_TRUE(options.bind);
  EXPECT_TRUE(options.recursive_bind);
  EXPECT_EQ(options.attributes.set, uint64_t{MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID});
  ASSERT_TRUE(options.attributes.propagation.has_value());
  EXPECT_EQ(options.attributes.propagation->type, Propagation::slave);
  EXPECT_TRUE(options.attributes.propagation->recursive);
  EXPECT_EQ(options.data, (std::vector<std::string>{"size=1k", "newinstance"}));
}

TEST(MountOptions, let_the_later_of_two_opposites_win) {
  EXPECT_EQ(parsed({"ro", "rw"}).attributes.set, 0u);
  EXPECT_EQ(parsed({"ro", "rw"}).attributes.clear, uint64_t{MOUNT_ATTR_RDONLY});
  EXPECT_EQ(parsed({"rw", "ro"}).attributes.set, uint64_t{MOUNT_ATTR_RDONLY});
  EXPECT_EQ(parsed({"noatime", "strictatime"}).attributes.set, uint64_t{MOUNT_ATTR_STRICTATIME});
  EXPECT_EQ(parsed({"noatime", "strictatime"}).attributes.clear, uint64_t{MOUNT_ATTR__ATIME});
}

TEST(MountOptions, keep_a_bind_recursive_whatever_comes_after) {
  EXPECT_TRUE(parsed({"rbind", "rprivate", "bind"}).recursive_bind);
  EXPECT_TRUE(parsed({"bind", "rbind"}).recursive_bind);
  EXPECT_FALSE(parsed({"bind", "ro"}).recursive_bind);
}

TEST(MountOptions, know_the_recursive_words) {
  MountOptions options = parsed({"rro", "rnosuid"});
  EXPECT_EQ(options.attributes.set, 0u);
  EXPECT_EQ(options.attributes.recursive_set, uint64_t{MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID});
  EXPECT_FALSE(options.bind);
}

TEST(MountOptions, drop_words_without_effect) {
  EXPECT_TRUE(parsed({"defaults", "async", "silent"}).data.empty());
  EXPECT_EQ(parsed({"sync"}).data, (std::vector<std::string>{"sync"}));
  EXPECT_TRUE(parsed({"bind", "sync"}).data.empty());
}

TEST(MountOptions, know_the_words_that_no_flag_stands_for) {
  MountOptions options = parsed({"idmap", "tmpcopyup", "remount", "nosymfollow"});
  EXPECT_TRUE(options.id_map && options.copy_up && options.remount);
  EXPECT_FALSE(options.recursive_id_map);
  EXPECT_EQ(options.attributes.set, uint64_t{MOUNT_ATTR_NOSYMFOLLOW});
  EXPECT_TRUE(options.data.empty());
  EXPECT_TRUE(parsed({"ridmap"}).id_map && parsed({"ridmap"}).recursive_id_map);
}

TEST(MountOptions, print_as_they_were_asked_for) {
  EXPECT_EQ(attribute_names(parsed({"ro", "nosuid", "noatime", "rprivate"}).attributes),
            "ro,nosuid,noatime,rprivate");
  EXPECT_EQ(attribute_names(parsed({"rro"}).attributes), "rro");
  EXPECT_EQ(attribute_names(parsed({"rw", "relatime"}).attributes), "rw,relatime");
  EXPECT_EQ(attribute_names({}), "");
}

}  // namespace
}  // namespace berth::plan
