// SPDX-License-Identifier: Apache-2.0
#include "erofs/writer.hpp"

#include <gtest/gtest.h>

#include "erofs/format.hpp"
#include "support/erofs_images.hpp"
#include "support/erofs_reader.hpp"
#include "sys/file/file.hpp"

namespace berth::erofs {
namespace {

TEST(Erofs, checksum_is_that_of_the_castagnoli_polynomial) {
  EXPECT_EQ(~checksum("123456789"), 0xe3069283u);
}

TEST(Erofs, what_is_written_is_read_again) {
  TreeLooks tree = ErofsReader::read(image_with_all(1 << 20));
  for (size_t size : {0, 1, 31, 4031, 4032, 4033, 4095, 4096, 4097, 8192, 300'000, 3'000'000}) {
    EXPECT_EQ(tree.at("many/size" + std::to_string(size)).content, bytes_of(size)) << size;
  }
  EXPECT_EQ(tree.at("many/attributes60000").attributes.at("user.a").size(), 60'000u);
  EXPECT_EQ(tree.at("many/attributes60000").content, "abc");
  EXPECT_EQ(tree.at("").attributes.at("trusted.overlay.opaque"), "y");
  EXPECT_EQ(tree.at("many/size4096").same_as, "again");
  EXPECT_EQ(tree.at("again").links, 2u);
  EXPECT_EQ(tree.at("again").uid, 70'000u);
  EXPECT_EQ(tree.at("again").modified, -5);
  EXPECT_EQ(tree.at("long").content, std::string(4095, 't'));
  EXPECT_EQ(tree.at("null").device, makedev(1, 3));
  EXPECT_EQ(tree.at("disk").device, makedev(0xfff, 0xfffff));
  EXPECT_EQ(tree.at("many").mode, S_IFDIR | 0750u);
}

TEST(Erofs, the_same_members_give_the_same_bytes) {
  EXPECT_EQ(image_with_all(1 << 20), image_with_all(777));
}

TEST(Erofs, directories_of_any_size_are_sorted_and_whole) {
  for (size_t count : {0, 1, 100, 339, 340, 341, 5000}) {
    sys::Fd file = *sys::memory_file("image", "");
    Writer writer(file, {});
    Directory root;
    auto node = *writer.add_special({}, FileType::fifo, 0, 0);
    for (size_t i = 0; i < count; ++i) {
      std::string name = std::to_string(i * 7919 % 5003);
      name.resize(std::max(name.size(), count == 5000 ? i % 256 : 1), '!');
      put(root, name, node);
    }
    ASSERT_TRUE(writer.finish(root).ok());
    TreeLooks tree = ErofsReader::read(*sys::read_at(file, 0, 4 << 20, "image"));
    EXPECT_EQ(tree.size(), 1 + count);
  }
}

TEST(Erofs, small_images_are_small) {
  sys::Fd file = *sys::memory_file("image", "");
  Writer writer(file, {});
  Directory root;
  put(root, "one", writer.add_file({}, {}, 5, in_parts("bytes", 5))->node);
  ASSERT_TRUE(writer.finish(root).ok());
  EXPECT_EQ(sys::read_at(file, 0, 1 << 20, "image")->size(), 2 * kBlock);
}

TEST(Erofs, attributes_that_cannot_be_are_refused) {
  auto error = [](std::string_view key, size_t size, Attributes attributes = Attributes()) {
    auto added = attributes.add(key, std::string(size, 'x'));
    return added.ok() ? "no error" : to_line(added.error());
  };
  EXPECT_EQ(error("user.a", 65535), "no error");
  EXPECT_EQ(error("system.posix_acl_default", 44), "no error");
  EXPECT_EQ(error("user.a", 65536), "attribute 'user.a' is too long for an EROFS image");
  EXPECT_EQ(error("user.a", 100, Attributes(64)),
            "attribute 'user.a' is too long for an EROFS image");
  EXPECT_EQ(error("user.", 1), "an EROFS image has no attribute 'user.'");
  EXPECT_EQ(error("system.other", 1), "an EROFS image has no attribute 'system.other'");
  EXPECT_EQ(error("user." + std::string(256, 'n'), 1).substr(0, 16), "attribute 'user.");
}

TEST(Erofs, a_file_has_the_size_that_was_said) {
  sys::Fd file = *sys::memory_file("image", "");
  Writer writer(file, {});
  for (size_t size : {10, 10'000}) {
    EXPECT_FALSE(writer.add_file({}, {}, size + 1, in_parts(std::string(size, 'x'), 7)).ok());
    EXPECT_FALSE(writer.add_file({}, {}, size - 1, in_parts(std::string(size, 'x'), 7)).ok());
  }
}

}  // namespace
}  // namespace berth::erofs
