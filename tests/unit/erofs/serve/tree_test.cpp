// SPDX-License-Identifier: Apache-2.0
#include "erofs/serve/tree.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "erofs/format.hpp"
#include "support/erofs_images.hpp"

namespace berth::erofs {
namespace {

constexpr uint32_t kNobody = 65534;
const Owners kEverybody({{0, 0, 0xffffffff}}, {{0, 0, 0xffffffff}}, 0, 0);
const Owners kMapped({{0, 1000, 1}, {1, 100000, 65535}}, {{0, 1000, 1}, {1, 100000, 65535}}, 0, 0);
const Owners kSingle({{0, 1000, 1}}, {{0, 1000, 1}}, 0, 0);

Inode owned(uint32_t uid, uint32_t gid, uint32_t mode) {
  Inode inode;
  inode.uid = uid;
  inode.gid = gid;
  inode.mode = mode;
  return inode;
}

TEST(Owners, ids_of_the_namespace_stay) {
  for (const Owners& owners : {kEverybody, kMapped}) {
    Inode inode = owned(33, 65535 - 1, S_IFREG | 06755);
    owners.translate(inode);
    EXPECT_EQ(inode.uid, 33u);
    EXPECT_EQ(inode.gid, 65534u);
    EXPECT_EQ(inode.mode, S_IFREG | 06755u);
  }
}

TEST(Owners, an_id_that_it_lacks_is_nobody_and_lends_no_rights) {
  Inode inode = owned(70'000, 70'000, S_IFREG | 06755);
  kMapped.translate(inode);
  EXPECT_EQ(inode.uid, kNobody);
  EXPECT_EQ(inode.gid, kNobody);
  EXPECT_EQ(inode.mode, S_IFREG | 0755u);
}

TEST(Owners, with_a_single_id_everything_is_the_users) {
  Inode inode = owned(33, 34, S_IFREG | 06755);
  kSingle.translate(inode);
  EXPECT_EQ(inode.uid, 0u);
  EXPECT_EQ(inode.gid, 0u);
  EXPECT_EQ(inode.mode, S_IFREG | 0755u);
  Inode own = owned(0, 0, S_IFREG | 06755);
  kSingle.translate(own);
  EXPECT_EQ(own.mode, S_IFREG | 06755u);
  Inode directory = owned(0, 34, S_IFDIR | 02755);
  kSingle.translate(directory);
  EXPECT_EQ(directory.mode, S_IFDIR | 02755u);
}

TEST(ShownTree, marks_are_those_that_overlay_reads_there) {
  auto user = [](std::string_view key) { return shown_key(key, Marks::user).value_or("nothing"); };
  EXPECT_EQ(user("trusted.overlay.opaque"), "user.overlay.opaque");
  EXPECT_EQ(user("trusted.other"), "nothing");
  EXPECT_EQ(user("user.a"), "user.a");
  EXPECT_EQ(user("security.capability"), "security.capability");
  EXPECT_EQ(shown_key("trusted.overlay.opaque", Marks::stored), "trusted.overlay.opaque");
}

struct Entry {
  uint16_t tag, permissions;
  uint32_t id;
};

std::string list_with(const std::vector<Entry>& entries) {
  std::string list;
  append_struct(list, uint32_t{2});
  for (Entry entry : entries) append_struct(list, entry);
  return list;
}

std::string list_of(uint32_t named) {
  return list_with({{1, 7, ~0u}, {2, 7, named}, {4, 5, ~0u}, {16, 7, ~0u}, {32, 0, ~0u}});
}

/// The mode and the attributes of a file whose list names `id`, as `owners` see it.
std::string listed(uint32_t id, const Owners& owners) {
  sys::Fd file = *sys::memory_file("image", "");
  Writer writer(file, {});
  Directory root;
  Attributes attributes;
  EXPECT_TRUE(attributes.add("user.a", "b").ok());
  EXPECT_TRUE(attributes.add("trusted.overlay.opaque", "y").ok());
  EXPECT_TRUE(attributes.add("system.posix_acl_access", list_of(id)).ok());
  put(root, "f", writer.add_file({0670, 0, 0, 0, 0}, attributes, 1, in_parts("x", 1))->node);
  EXPECT_TRUE(writer.finish(root).ok());
  auto reader = Reader::open(file);
  ShownTree tree(*reader, owners, Marks::user);
  auto found = reader->find(*reader->inode(reader->root()), "f");
  auto inode = tree.inode(**found);
  std::string text = octal(inode->mode);
  auto names = tree.attribute_names(*inode);
  for (const std::string& name : *names) text += " " + name;
  EXPECT_EQ(**tree.attribute(*inode, "user.overlay.opaque"), "y");
  EXPECT_FALSE(*tree.attribute(*inode, "trusted.overlay.opaque"));
  return text;
}

TEST(ShownTree, a_list_that_names_strangers_is_not_shown_and_grants_nothing) {
  EXPECT_EQ(listed(1001, kMapped), "0670 user.a user.overlay.opaque system.posix_acl_access");
  EXPECT_EQ(listed(1001, kSingle), "0650 user.a user.overlay.opaque");
  EXPECT_EQ(listed(0, kSingle), "0670 user.a user.overlay.opaque system.posix_acl_access");
}

TEST(Owners, a_list_that_is_not_shown_takes_nobodys_denial_along) {
  constexpr uint32_t kStranger = 200000;
  std::string denies = list_with(
      {{1, 7, ~0u}, {2, 0, 33}, {2, 4, kStranger}, {4, 5, ~0u}, {16, 5, ~0u}, {32, 4, ~0u}});
  EXPECT_FALSE(kMapped.know_all_of(denies));
  EXPECT_EQ(kMapped.without_list(0754, denies), 0700u);
  std::string grants =
      list_with({{1, 7, ~0u}, {2, 4, kStranger}, {4, 5, ~0u}, {16, 7, ~0u}, {32, 4, ~0u}});
  EXPECT_EQ(kMapped.without_list(0774, grants), 0754u);
}

}  // namespace
}  // namespace berth::erofs
