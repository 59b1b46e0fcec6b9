// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/image_file.hpp"

#include <sys/stat.h>

#include <optional>
#include <vector>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

/// The little-endian number of `width` bytes, at most 8, at `offset`; all of them have to be in
/// `bytes`.
uint64_t little_endian(std::string_view bytes, size_t offset, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "SIF_MAGIC\0"sv;
constexpr size_t kMagicAt = 32;
constexpr size_t kDescriptor = 585;  // packed, as Go's encoding/binary writes the struct
// Apptainer makes 48. The whole table is read into memory.
constexpr uint64_t kMostDescriptors = 1024;

enum Field : size_t {  // offsets in the header
  kTotal = 88,
  kTableAt = 96,
};
enum Member : size_t {  // offsets in a descriptor
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
constexpr uint64_t kSifSquashfsHead = 96;  // the size of its superblock

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

constexpr std::string_view kSquashfsMagic = "hsqs";
constexpr size_t kSquashfsHead = 96;
constexpr std::string_view kErofsMagic = "\xe2\xe1\xf5\xe0";
constexpr size_t kErofsAt = 1024;

// Without this check the reader of the image would fail, with a less helpful message.
Result<void> check_squashfs(std::string_view head, uint64_t size) {
  if (head.size() < kSquashfsHead || !head.starts_with(kSquashfsMagic)) {
    return make_error(Kind::corrupt, "the SIF is damaged: its root is not a squashfs");
  }
  if (little_endian(head, 28, 2) != 4) {
    return make_error(Kind::unsupported, "its squashfs is not version 4");
  }
  uint64_t used = little_endian(head, 40, 8);
  if (used <= size) return {};
  return make_error(Kind::corrupt, "it is truncated: its squashfs has " + std::to_string(used) +
                                       " bytes, the file has " + std::to_string(size));
}

bool is_sif(std::string_view head) {
  return head.size() >= kSifHeader && head.substr(kMagicAt, kMagic.size()) == kMagic;
}

Result<std::optional<ImagePart>> identify(const ReadAt& read, uint64_t size) {
  std::string head = TRY(read(0, kErofsAt + kErofsMagic.size()));
  ImagePart part{ImageFormat::squashfs, {0, size}, false};
  if (is_sif(head)) {
    part.sif = true;
    part.extent = TRY(find_sif_root(read, size));
    head = TRY(read(part.extent.offset, kSquashfsHead));
  } else if (head.size() > kErofsAt && head.substr(kErofsAt) == kErofsMagic) {
    part.format = ImageFormat::erofs;
    return std::optional<ImagePart>(part);
  } else if (!head.starts_with(kSquashfsMagic)) {
    return std::optional<ImagePart>();
  }
  TRY(check_squashfs(head, part.extent.size));
  return std::optional<ImagePart>(part);
}

}  // namespace

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

Result<std::optional<ImagePart>> identify_image(const Fd& file, const std::string& name) {
  struct stat info = TRY(stat_fd(file, name));
  if (!S_ISREG(info.st_mode)) return make_error(Kind::usage, "it is not a regular file");
  auto read = [&](uint64_t offset, size_t length) { return read_at(file, offset, length, name); };
  return identify(read, static_cast<uint64_t>(info.st_size));
}

}  // namespace berth::sys
