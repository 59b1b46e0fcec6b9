// SPDX-License-Identifier: Apache-2.0
#include "erofs/reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "erofs/format.hpp"
#include "support/erofs_images.hpp"
#include "support/erofs_reader.hpp"
#include "support/erofs_walk.hpp"

namespace berth::erofs {
namespace {

struct Seen {
  Result<TreeLooks> tree;
  bool found_all;
};

Seen walk(const std::string& bytes) {
  sys::Fd file = *sys::memory_file("image", bytes);
  auto reader = Reader::open(file);
  if (!reader.ok()) return {reader.error(), false};
  Walk walk(*reader, {});
  auto tree = walk.all();
  return {std::move(tree), walk.found_all()};
}

std::string why(const std::string& bytes) {
  auto seen = walk(bytes).tree;
  return seen.ok() ? "no error" : seen.error().what;
}

/// The image with other bytes in its superblock, whose checksum is right.
template <class T>
std::string with(std::string image, size_t offset, T value) {
  image.replace(kSuperblockAt + offset, sizeof value, struct_bytes(value));
  uint32_t sum = 0;
  image.replace(kSuperblockAt + offsetof(Superblock, checksum), sizeof sum, struct_bytes(sum));
  sum = checksum(std::string_view(image).substr(kSuperblockAt, kBlock - kSuperblockAt));
  return image.replace(kSuperblockAt + offsetof(Superblock, checksum), sizeof sum,
                       struct_bytes(sum));
}

template <class T>
std::string with_at(std::string image, uint64_t at, T value) {
  image.replace(at, sizeof value, struct_bytes(value));
  return with(std::move(image), offsetof(Superblock, volume_name), char{0});
}

/// An image of compact inodes, as mkfs.erofs writes them: a root with a file "f" of six bytes,
/// which shares an attribute, in two blocks.
std::string compact_image() {
  std::string image(2 * kBlock, '\0');
  Superblock superblock;
  superblock.root = (kSuperblockAt + sizeof superblock) / kSlot;
  superblock.inodes = 2;
  superblock.blocks = 2;
  superblock.build_time = 77;
  superblock.incompatible = 1;
  superblock.attributes_block = 1;
  uint64_t root_at = superblock.root * kSlot;
  uint64_t file_at = root_at + 128;
  std::string entries;
  const char* names[] = {".", "..", "f"};
  uint16_t name_at = 36;
  for (const char* name : names) {
    uint64_t number = (name[0] == 'f' ? file_at : root_at) / kSlot;
    append_struct(entries, DiskEntry{{static_cast<uint32_t>(number), 0},
                                     name_at,
                                     static_cast<uint8_t>(name[0] == 'f' ? 1 : 2),
                                     0});
    name_at = static_cast<uint16_t>(name_at + std::strlen(name));
  }
  entries += "...f";
  CompactInode root;
  root.format = static_cast<uint16_t>(Layout::tail) << kLayoutShift;
  root.mode = S_IFDIR | 0755;
  root.links = 2;
  root.size = static_cast<uint32_t>(entries.size());
  CompactInode file;
  file.format = root.format;
  file.attributes = 2;  // the header and one word
  file.mode = S_IFREG | 0640;
  file.links = 1;
  file.size = 6;
  file.uid = 33;
  file.gid = 34;
  std::string record(struct_bytes(file));
  AttributesHeader header;
  header.shared = 1;
  append_struct(record, header);
  append_struct(record, uint32_t{2});
  record += "inside";
  std::string shared(8, '\0');
  append_struct(shared, AttributeEntry{1, static_cast<uint8_t>(Prefix::user), 3});
  shared += "abcd";
  image.replace(kSuperblockAt, sizeof superblock, struct_bytes(superblock));
  image.replace(root_at, sizeof root, struct_bytes(root));
  image.replace(root_at + sizeof root, entries.size(), entries);
  image.replace(file_at, record.size(), record);
  image.replace(kBlock, shared.size(), shared);
  return with(image, offsetof(Superblock, inodes), superblock.inodes);
}

TEST(ErofsReader, sees_what_another_reader_sees) {
  std::string image = image_with_all(1 << 20);
  auto seen = walk(image);
  ASSERT_TRUE(seen.tree.ok()) << to_line(seen.tree.error());
  EXPECT_EQ(*seen.tree, ErofsReader::read(image));
  EXPECT_TRUE(seen.found_all);
}

TEST(ErofsReader, reads_compact_inodes_and_shared_attributes) {
  auto seen = walk(compact_image());
  ASSERT_TRUE(seen.tree.ok()) << to_line(seen.tree.error());
  const FileLooks& file = seen.tree->at("f");
  EXPECT_EQ(file.content, "inside");
  EXPECT_EQ(file.uid, 33u);
  EXPECT_EQ(file.modified, 77);
  EXPECT_EQ(file.attributes, (std::map<std::string, std::string>{{"user.a", "bcd"}}));
  EXPECT_TRUE(seen.found_all);
}

TEST(ErofsReader, finds_every_name_of_large_directories_and_no_other) {
  for (size_t count : {0, 1, 340, 341, 5000}) {
    sys::Fd file = *sys::memory_file("image", "");
    Writer writer(file, {});
    Directory root;
    auto node = *writer.add_special({}, FileType::fifo, 0, 0);
    for (size_t i = 0; i < count; ++i) put(root, "n" + std::to_string(i * 2), node);
    ASSERT_TRUE(writer.finish(root).ok());
    auto reader = Reader::open(file);
    ASSERT_TRUE(reader.ok());
    auto directory = reader->inode(reader->root());
    ASSERT_TRUE(directory.ok());
    for (size_t i = 0; i < count; ++i) {
      auto found = reader->find(*directory, "n" + std::to_string(i * 2));
      ASSERT_TRUE(found.ok() && *found) << i;
      auto other = reader->find(*directory, "n" + std::to_string(i * 2 + 1));
      ASSERT_TRUE(other.ok() && !*other) << i;
    }
    for (const char* name : {"", "a", "zzz", "n", "\xff"}) {
      auto found = reader->find(*directory, name);
      ASSERT_TRUE(found.ok()) << name;
      EXPECT_FALSE(found->has_value()) << name;
    }
  }
}

TEST(ErofsReader, refuses_what_is_no_image_or_not_all_of_one) {
  std::string image = image_with_all(1 << 20);
  EXPECT_EQ(why(""), "the file is too short for an EROFS image");
  EXPECT_EQ(why(std::string(8192, '\0')), "the file is not an EROFS image");
  EXPECT_EQ(why(image.substr(0, image.size() - kBlock)).substr(0, 28),
            "the EROFS image is truncated");
  std::string other = image;
  other[kSuperblockAt + offsetof(Superblock, uuid)] ^= 1;
  EXPECT_EQ(why(other), "the EROFS image is damaged: its superblock has another checksum");
}

TEST(ErofsReader, names_what_it_does_not_read) {
  std::string image = compact_image();
  constexpr size_t kFeatures = offsetof(Superblock, incompatible);
  EXPECT_EQ(why(with(image, kFeatures, uint32_t{1})), "no error");
  EXPECT_EQ(why(with(image, kFeatures, uint32_t{3})), "the EROFS image uses compression");
  EXPECT_EQ(why(with(image, kFeatures, uint32_t{0x1c})),
            "the EROFS image uses files in chunks, several devices, compressed ends of files");
  EXPECT_EQ(why(with(image, kFeatures, uint32_t{0x80000000})),
            "the EROFS image uses what is newer than this program");
  EXPECT_EQ(why(with(image, offsetof(Superblock, lz4_distance), uint16_t{0xffff})),
            "the EROFS image uses compression");
  EXPECT_EQ(why(with(image, offsetof(Superblock, block_bits), uint8_t{9})),
            "the EROFS image has blocks that are not of 4096 bytes");
  uint64_t file_at = kSuperblockAt + sizeof(Superblock) + 128;
  auto layout = [&](uint16_t number) {
    return why(with_at(image, file_at, static_cast<uint16_t>(number << kLayoutShift)));
  };
  EXPECT_EQ(layout(1), "a file of the EROFS image lies compressed");
  EXPECT_EQ(layout(3), "a file of the EROFS image lies compressed");
  EXPECT_EQ(layout(4), "a file of the EROFS image lies in chunks");
  EXPECT_EQ(layout(7), "a file of the EROFS image lies in a way that is unknown");
}

TEST(ErofsReader, refuses_places_outside_of_the_image) {
  const std::string image = compact_image();
  const std::string damaged = "the EROFS image is damaged: ";
  uint64_t root_at = kSuperblockAt + sizeof(Superblock);
  uint64_t file_at = root_at + 128;
  EXPECT_EQ(why(with(image, offsetof(Superblock, root), uint16_t{0xffff})),
            damaged + "an inode lies beyond its end");
  EXPECT_EQ(why(with(image, offsetof(Superblock, inodes_block), uint32_t{0xffffffff})),
            damaged + "something lies beyond its end");
  EXPECT_EQ(why(with(image, offsetof(Superblock, attributes_block), uint32_t{0xffffffff})),
            damaged + "something lies beyond its end");
  auto file = [&](size_t offset, auto value) {
    return why(with_at(image, file_at + offset, value));
  };
  EXPECT_EQ(file(offsetof(CompactInode, size), uint32_t{0xffffffff}),
            damaged + "a file's end lies in two blocks");
  EXPECT_EQ(file(offsetof(CompactInode, size), uint32_t{0x10006}),
            damaged + "a file lies beyond its end");
  EXPECT_EQ(file(offsetof(CompactInode, attributes), uint16_t{0xffff}),
            damaged + "an inode's attributes lie beyond its end");
  EXPECT_EQ(file(offsetof(CompactInode, mode), uint16_t{0}),
            damaged + "an inode is of no known type");
  EXPECT_EQ(file(offsetof(CompactInode, mode), uint16_t{S_IFLNK}), "no error");
  EXPECT_EQ(file(sizeof(CompactInode) + offsetof(AttributesHeader, shared), uint8_t{255}),
            damaged + "attributes lie beyond their place");
  uint64_t entries_at = root_at + sizeof(CompactInode);
  auto entry = [&](size_t index, uint16_t name_at) {
    return why(with_at(image, entries_at + index * sizeof(DiskEntry) + 8, name_at));
  };
  EXPECT_EQ(entry(0, 0), damaged + "a directory has its first name nowhere");
  EXPECT_EQ(entry(0, 37), damaged + "a directory has its first name nowhere");
  EXPECT_EQ(entry(0, 0xfffc), damaged + "a directory has its first name nowhere");
  EXPECT_EQ(entry(1, 36), damaged + "a directory has a name nowhere");
  EXPECT_EQ(entry(2, 0xffff), damaged + "a directory has a name nowhere");
  EXPECT_EQ(why(with_at(image, entries_at + 39, '/')),
            damaged + "a directory has a name that is none");
  EXPECT_EQ(why(with_at(image, entries_at + 24, uint32_t{0x7fffffff})),
            damaged + "an inode lies beyond its end");
}

TEST(ErofsReader, a_directory_in_itself_ends) {
  uint64_t root_at = kSuperblockAt + sizeof(Superblock);
  uint64_t third = root_at + sizeof(CompactInode) + 2 * sizeof(DiskEntry);
  EXPECT_EQ(why(with_at(compact_image(), third, static_cast<uint32_t>(root_at / kSlot))),
            "no error");
}

TEST(ErofsReader, a_file_that_has_become_shorter_is_an_error) {
  sys::Fd file = *sys::memory_file("image", image_with_all(1 << 20));
  auto reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->check_length().ok());
  ASSERT_TRUE(sys::truncate(file, kBlock, "image").ok());
  EXPECT_FALSE(reader->check_length().ok());
  Walk walk(*reader, {});
  EXPECT_EQ(walk.all().error().what, "the EROFS image is damaged: it has become shorter");
}

TEST(ErofsReader, any_byte_may_be_wrong) {
  std::string image = compact_image();
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string harmed = image;
    uint64_t begin = kSuperblockAt + sizeof(Superblock);
    for (int i = 0; i < 3; ++i) {
      harmed[begin + random() % 256] = static_cast<char>(random());
    }
    why(with(harmed, offsetof(Superblock, volume_name),
             char{0}));  // it ends, and reads nothing else
  }
}

}  // namespace
}  // namespace berth::erofs
