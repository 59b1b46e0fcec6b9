// SPDX-License-Identifier: Apache-2.0
// The disk format of EROFS images without compression, for Linux 5.4 and later. We write no feature
// that Linux 5.4 lacks, and also read the images that mkfs.erofs writes.
// Source: kernel Documentation/filesystems/erofs.rst; erofs.docs.kernel.org "Core on-disk format".
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace berth::erofs {

static_assert(std::endian::native == std::endian::little, "the structs are written as they are");

inline constexpr uint64_t kBlock = 4096;
inline constexpr unsigned kBlockBits = 12;
inline constexpr uint64_t kSlot = 32;  ///< alignment of inodes; inode numbers count slots
inline constexpr uint64_t kSuperblockAt = 1024;
inline constexpr uint32_t kMagic = 0xe0f5'e1e2;
inline constexpr uint32_t kCompatChecksum = 1;  ///< Superblock::checksum is valid
inline constexpr uint32_t kCompatMtime = 2;     ///< the times of inodes are mtimes
inline constexpr uint32_t kNoBlock = 0xffff'ffff;
inline constexpr size_t kMaxName = 255;

struct Superblock {
  uint32_t magic = kMagic;
  uint32_t checksum = 0;  ///< CRC32C of superblock to end of block, with 0 in this field
  uint32_t compatible = kCompatChecksum | kCompatMtime;
  uint8_t block_bits = kBlockBits;
  uint8_t extra_slots = 0;
  uint16_t root = 0;  ///< the inode number of the root directory
  uint64_t inodes = 0;
  uint64_t build_time = 0;
  uint32_t build_time_nanoseconds = 0;
  uint32_t blocks = 0;
  uint32_t inodes_block = 0;      ///< the block of slot 0
  uint32_t attributes_block = 0;  ///< the first block of shared attributes
  std::array<uint8_t, 16> uuid = {};
  std::array<char, 16> volume_name = {};
  uint32_t incompatible = 0;
  uint16_t lz4_distance = 0;  ///< or a mask of compression algorithms; 0: no compression
  std::array<uint8_t, 42> unused = {};
};
static_assert(sizeof(Superblock) == 128 && offsetof(Superblock, uuid) == 48 &&
              offsetof(Superblock, incompatible) == 80);

/// Where the content of an inode is stored.
enum class Layout : uint16_t {
  blocks = 0,  ///< in blocks of its own
  tail = 2,    ///< full blocks; the remaining bytes directly behind the inode, in the same block
};
/// The bits of DiskInode::format: a flag for an extended inode, then the layout.
inline constexpr unsigned kExtendedInode = 1;
inline constexpr unsigned kLayoutShift = 1;
inline constexpr unsigned kLayoutMask = 7;

/// The format field of an extended inode.
constexpr uint16_t inode_format(Layout layout) {
  return static_cast<uint16_t>(1 | static_cast<uint16_t>(layout) << 1);
}

struct DiskInode {
  uint16_t format = 0;
  uint16_t attributes = 0;  ///< 0: none; else 1 + 32-bit words behind AttributesHeader
  uint16_t mode = 0;
  uint16_t unused = 0;
  uint64_t size = 0;
  uint32_t where = 0;   ///< the first block of the content, or the device number
  uint32_t number = 0;  ///< the inode number for stat(2) on 32-bit systems
  uint32_t uid = 0;
  uint32_t gid = 0;
  int64_t modified = 0;
  uint32_t modified_nanoseconds = 0;
  uint32_t links = 0;
  std::array<uint8_t, 16> unused_too = {};
};
static_assert(sizeof(DiskInode) == 64 && offsetof(DiskInode, links) == 44);

/// The short form of an inode, which mkfs.erofs prefers. The modification time of such an inode is
/// the build time in the superblock.
struct CompactInode {
  uint16_t format = 0;
  uint16_t attributes = 0;
  uint16_t mode = 0;
  uint16_t links = 0;
  uint32_t size = 0;
  uint32_t unused = 0;
  uint32_t where = 0;
  uint32_t number = 0;
  uint16_t uid = 0;
  uint16_t gid = 0;
  uint32_t unused_too = 0;
};
static_assert(sizeof(CompactInode) == 32 && offsetof(CompactInode, uid) == 24);

/// Directly behind an inode that has attributes. The numbers of its shared attributes follow, then
/// the entries of the attributes that are not shared.
struct AttributesHeader {
  uint32_t filter = 0;
  uint8_t shared = 0;
  std::array<uint8_t, 7> unused = {};
};
static_assert(sizeof(AttributesHeader) == 12);

/// One attribute. Its name without the prefix and its value follow, padded with zeros to 4 bytes.
struct AttributeEntry {
  uint8_t name_length = 0;
  uint8_t prefix = 0;  ///< Prefix
  uint16_t value_size = 0;
};
static_assert(sizeof(AttributeEntry) == 4);
enum class Prefix : uint8_t {
  user = 1,
  acl_access = 2,
  acl_default = 3,
  trusted = 4,
  security = 6
};

/// A block of a directory consists of such entries, sorted by the bytes of their names, and then
/// the names. The offset of the first name gives the number of entries.
struct DiskEntry {
  std::array<uint32_t, 2> inode = {};  ///< low word first; for a struct of 12 bytes
  uint16_t name_at = 0;
  uint8_t type = 0;  ///< FileType
  uint8_t unused = 0;
};
static_assert(sizeof(DiskEntry) == 12);

enum class FileType : uint8_t {
  file = 1,
  directory = 2,
  character_device = 3,
  block_device = 4,
  fifo = 5,
  socket = 6,
  symlink = 7,
};

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The bytes of a struct of this file; these structs have no padding.
template <class T>
std::string_view struct_bytes(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
void append_struct(std::string& bytes, const T& value) {
  bytes += struct_bytes(value);
}

/// The CRC32C of a superblock: initialised with all ones, and not inverted at the end.
uint32_t checksum(std::string_view bytes);

}  // namespace berth::erofs
