// SPDX-License-Identifier: Apache-2.0
// Reads EROFS images of anybody. Nothing is taken for granted: every place, size, count and name is
// checked against the file before it is used, and what is kept in memory is a block at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "erofs/format.hpp"
#include "sys/fd/fd.hpp"

namespace berth::erofs {

/// An inode whose content and attributes lie within the image.
struct Inode {
  uint64_t number = 0;  ///< the slot that it begins at; other inodes have others
  uint32_t mode = 0;    ///< with the bits of its type
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t links = 0;
  int64_t modified = 0;
  uint32_t modified_nanoseconds = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t size = 0;
  uint64_t in_blocks = 0;  ///< how much of it lies at `blocks_at`; the rest, less than a block,
  uint64_t blocks_at = 0;  ///< lies at `tail_at`. Both are addresses in the image.
  uint64_t tail_at = 0;
  uint64_t attributes_at = 0;
  uint64_t attributes_size = 0;
};

/// Bytes of an image.
struct Piece {
  uint64_t at = 0;
  uint64_t length = 0;
};

/// An extended attribute; its value stays where it is.
struct AttributePlace {
  std::string key;
  Piece value;
};

/// One block of a directory.
class DirectoryBlock {
 public:
  struct Entry {
    uint64_t inode = 0;
    uint8_t type = 0;  ///< a FileType, if the image is in order
    std::string_view name;
  };

  /// At most a block.  Errors: corrupt (its first entry tells no count that there is room for).
  static Result<DirectoryBlock> parse(std::string bytes);

  size_t size() const { return size_; }
  /// `index` below size(). The name lives as long as this, and is one that a directory may have,
  /// "." and ".." too.  Errors: corrupt.
  Result<Entry> at(size_t index) const;

 private:
  std::string bytes_;
  size_t size_ = 0;
};

/// Several threads may use one at a time.
class Reader {
 public:
  /// `image`: open for reading; it outlives this.
  /// Errors: corrupt (no EROFS image, a damaged or truncated one), unsupported (compressed, in
  /// chunks, on several devices, blocks that are not of 4 KiB), io.
  static Result<Reader> open(const sys::Fd& image);

  uint64_t root() const { return superblock_.root; }  ///< the number of its inode
  uint64_t blocks() const { return superblock_.blocks; }
  uint64_t inodes() const { return superblock_.inodes; }

  /// Errors: corrupt, unsupported (its content is compressed, or in chunks), io.
  Result<Inode> inode(uint64_t number) const;

  /// Where `length` bytes of content from `offset` on lie: the second piece is of the tail. Less,
  /// or nothing, beyond the end.
  static std::array<Piece, 2> places(const Inode& inode, uint64_t offset, uint64_t length);
  /// Errors: io; corrupt where the file has become shorter than it was.
  Result<std::string> read(const Piece& piece) const;
  /// Whether the file is still as long as it was: what splice(2) would not tell. Errors: corrupt.
  Result<void> check_length() const;

  /// Errors: corrupt (no symbolic link, or none of 1 to 4095 bytes), io.
  Result<std::string> read_link(const Inode& inode) const;

  /// How many blocks a directory has.
  static uint64_t directory_blocks(const Inode& directory);
  /// Errors: corrupt (no directory, no such block), io.
  Result<DirectoryBlock> directory_block(const Inode& directory, uint64_t index) const;
  /// The number of the inode that `name` has in the directory.  Errors: corrupt, io.
  Result<std::optional<uint64_t>> find(const Inode& directory, std::string_view name) const;

  /// In the order of the image.  Errors: corrupt (also more than 64 KiB of keys), io.
  Result<std::vector<AttributePlace>> attributes(const Inode& inode) const;

 private:
  explicit Reader(const sys::Fd& image) : image_(&image) {}

  Result<void> read_superblock();
  Result<void> fill(uint64_t at, char* bytes, size_t length) const;
  template <class T>
  Result<T> read_struct(uint64_t at) const;
  Result<void> place_content(Inode& inode, unsigned layout, uint32_t where, uint64_t behind) const;
  bool holds(const Piece& piece) const;
  Result<AttributePlace> attribute_at(uint64_t at, uint64_t end) const;

  const sys::Fd* image_;
  uint64_t size_ = 0;
  Superblock superblock_;
};

}  // namespace berth::erofs
