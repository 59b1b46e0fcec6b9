// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/sif.hpp"

#include <optional>
#include <vector>

#include "sys/mount/little_endian.hpp"

namespace berth::sys {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "SIF_MAGIC\0"sv;
constexpr size_t kMagicAt = 32;
constexpr size_t kDescriptor = 585;  // packed, as Go's encoding/binary writes the struct
// Apptainer makes 48; the table is read at once.
constexpr uint64_t kMostDescriptors = 1024;

enum Field : size_t {  // of the header
  kTotal = 88,
  kTableAt = 96,
};
enum Member : size_t {  // of a descriptor
  kType = 0,
  kUsed = 4,
  kOffset = 17,
  kSize = 25,
  kFileSystem = 201,
  kRole = 205,
};
constexpr uint64_t kPartition = 0x4004;
constexpr uint64_t kSquashfs = 1, kEncrypted = 5;
constexpr uint64_t kPrimarySystem = 2;
constexpr uint64_t kSifSquashfsHead = 96;  // its superblock

Error damaged(const char* why) {
  return make_error(Kind::corrupt, std::string("the SIF is damaged: ") + why);
}

bool is_inside(const Extent& part, uint64_t size) {
  return part.offset <= size && part.size <= size - part.offset;
}

bool overlap(const Extent& one, const Extent& other) {
  return one.size > 0 && other.size > 0 && one.offset < other.offset + other.size &&
         other.offset < one.offset + one.size;
}

Result<void> check_file_system(uint64_t type) {
  if (type == kSquashfs) return {};
  if (type == kEncrypted) return make_error(Kind::unsupported, "the SIF is encrypted");
  return make_error(Kind::unsupported, "the SIF's file system is not squashfs");
}

Result<Extent> find_table(std::string_view header, uint64_t file_size) {
  uint64_t total = little_endian(header, kTotal, 8);
  if (total == 0 || total > kMostDescriptors) return damaged("no sane number of objects");
  Extent table{little_endian(header, kTableAt, 8), total * kDescriptor};
  if (table.offset < kSifHeader || !is_inside(table, file_size)) {
    return damaged("the table of its objects is outside of the file");
  }
  return table;
}

}  // namespace

bool is_sif(std::string_view head) {
  return head.size() >= kSifHeader && head.substr(kMagicAt, kMagic.size()) == kMagic;
}

Result<Extent> find_sif_root(const ReadAt& read, uint64_t file_size) {
  std::string header = TRY(read(0, kSifHeader));
  if (!is_sif(header)) return damaged("it has no header");
  Extent table = TRY(find_table(header, file_size));
  std::string descriptors = TRY(read(table.offset, table.size));
  if (descriptors.size() != table.size) return damaged("the table of its objects is cut off");
  std::vector<Extent> parts = {{0, kSifHeader}, table};
  std::optional<Extent> root;
  for (size_t at = 0; at < descriptors.size(); at += kDescriptor) {
    std::string_view one = std::string_view(descriptors).substr(at, kDescriptor);
    if (one[kUsed] == 0) continue;
    Extent part{little_endian(one, kOffset, 8), little_endian(one, kSize, 8)};
    if (!is_inside(part, file_size)) return damaged("an object is outside of the file");
    bool primary = little_endian(one, kType, 4) == kPartition &&
                   little_endian(one, kRole, 4) == kPrimarySystem;
    if (!primary) {
      parts.push_back(part);
      continue;
    }
    if (root) return make_error(Kind::unsupported, "the SIF has two primary system partitions");
    TRY(check_file_system(little_endian(one, kFileSystem, 4)));
    if (part.size < kSifSquashfsHead) return damaged("its root is too short for a file system");
    root = part;
  }
  if (!root) return make_error(Kind::unsupported, "the SIF has no primary system partition");
  for (const Extent& part : parts) {
    if (overlap(part, *root)) return damaged("its root overlaps another object");
  }
  return *root;
}

}  // namespace berth::sys
