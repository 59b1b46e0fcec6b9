// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sys/mount/image_file.hpp"

namespace berth::sys {
namespace {

using ::testing::HasSubstr;

constexpr size_t kDescriptor = 585;

void put(std::string& bytes, size_t at, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

struct Object {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t role = 2;
  uint32_t file_system = 1;
  bool used = true;
  uint32_t type = 0x4004;
};

std::string sif(const std::vector<Object>& objects, uint64_t total, uint64_t table = kSifHeader) {
  std::string bytes(kSifHeader, '\0');
  bytes.replace(32, 9, "SIF_MAGIC");
  put(bytes, 88, total, 8);
  put(bytes, 96, table, 8);
  for (const Object& object : objects) {
    std::string one(kDescriptor, '\0');
    put(one, 0, object.type, 4);
    one[4] = object.used ? 1 : 0;
    put(one, 17, object.offset, 8);
    put(one, 25, object.size, 8);
    put(one, 201, object.file_system, 4);
    put(one, 205, object.role, 4);
    bytes += one;
  }
  return bytes;
}

Result<Extent> find(const std::vector<Object>& objects, uint64_t size = 8192) {
  std::string bytes = sif(objects, objects.size());
  bytes.resize(std::max<size_t>(size, bytes.size()));
  auto read = [&](uint64_t offset, size_t length) -> Result<std::string> {
    return offset < bytes.size() ? bytes.substr(offset, length) : std::string();
  };
  return find_sif_root(read, size);
}

std::string why(const std::vector<Object>& objects) {
  auto found = find(objects);
  return found.ok() ? "" : found.error().what;
}

TEST(Sif, finds_the_primary_system_partition_among_others) {
  Object labels{4000, 96, 0, 0, true, 0x4003}, other{5000, 10, 3};
  auto found = find({labels, other, {6000, 2192}});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->offset, 6000u);
  EXPECT_EQ(found->size, 2192u);
}

TEST(Sif, takes_a_root_that_lies_in_the_file_alone) {
  EXPECT_THAT(why({{6000, 2193}}), HasSubstr("outside of the file"));
  EXPECT_THAT(why({{6000, ~uint64_t{0}}}), HasSubstr("outside of the file"));
  EXPECT_THAT(why({{~uint64_t{0}, 2}}), HasSubstr("outside of the file"));
}

TEST(Sif, takes_no_root_that_overlaps_table_or_object) {
  EXPECT_THAT(why({{100, 8000}}), HasSubstr("overlaps"));
  EXPECT_THAT(why({{kSifHeader + 1, 100}}), HasSubstr("overlaps"));
  EXPECT_THAT(why({{5000, 100}, {5099, 1, 3}}), HasSubstr("overlaps"));
  EXPECT_EQ(why({{5000, 100}, {5100, 1, 3}}), "");
}

TEST(Sif, takes_no_root_that_is_too_short_for_a_file_system) {
  EXPECT_THAT(why({{5000, 95}}), HasSubstr("too short"));
  EXPECT_EQ(why({{5000, 96}}), "");
}

TEST(Sif, says_what_it_cannot_read) {
  EXPECT_THAT(why({{5000, 100, 2, 5}}), HasSubstr("encrypted"));
  EXPECT_THAT(why({{5000, 100, 2, 2}}), HasSubstr("not squashfs"));
  EXPECT_THAT(why({{5000, 100, 3}}), HasSubstr("no primary"));
  EXPECT_THAT(why({{5000, 100, 2, 1, false}}), HasSubstr("no primary"));
  EXPECT_THAT(why({{5000, 100}, {6000, 100}}), HasSubstr("two primary"));
}

TEST(Sif, believes_no_number_of_its_header) {
  for (uint64_t total : {uint64_t{0}, uint64_t{1025}, uint64_t{1} << 63}) {
    std::string bytes = sif({{5000, 100}}, total);
    bytes.resize(8192);
    auto read = [&](uint64_t offset, size_t length) -> Result<std::string> {
      EXPECT_LE(length, bytes.size());  // nothing large is asked for
      return bytes.substr(offset, length);
    };
    EXPECT_FALSE(find_sif_root(read, bytes.size()).ok());
  }
  for (uint64_t table : {uint64_t{0}, uint64_t{127}, uint64_t{8000}, ~uint64_t{0}}) {
    std::string bytes = sif({{5000, 100}}, 1, table);
    bytes.resize(8192);
    auto read = [&](uint64_t offset, size_t length) -> Result<std::string> {
      return bytes.substr(offset, length);
    };
    EXPECT_FALSE(find_sif_root(read, bytes.size()).ok());
  }
}

}  // namespace
}  // namespace berth::sys
