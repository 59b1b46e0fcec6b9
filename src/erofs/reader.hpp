// SPDX-License-Identifier: Apache-2.0
// Reads untrusted EROFS images. Every address, size, count and name is checked against the file
// before use, and memory holds one block at a time.
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

/// An inode. Its content and attributes have been checked to be within the image.
struct Inode {
  uint64_t number = 0;  ///< the slot of the inode, unique in the image
  uint32_t mode = 0;    ///< including the file type
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t links = 0;
  int64_t modified = 0;
  uint32_t modified_nanoseconds = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t size = 0;
  uint64_t in_blocks = 0;  ///< bytes of content at `blocks_at`; the rest, less than a block,
  uint64_t blocks_at = 0;  ///< is at `tail_at`. Both are addresses in the image.
  uint64_t tail_at = 0;
  uint64_t attributes_at = 0;
  uint64_t attributes_size = 0;
};

/// A range of an image.
struct Piece {
  uint64_t at = 0;
  uint64_t length = 0;
};

/// An extended attribute; its value stays in the image.
struct AttributePlace {
  std::string key;
  Piece value;
};

/// One block of a directory.
class DirectoryBlock {
 public:
  struct Entry {
    uint64_t inode = 0;
    uint8_t type = 0;  ///< a FileType, if the image is valid
    std::string_view name;
  };

  /// `bytes`: at most a block.  Errors: corrupt (the first entry implies an impossible number of
  /// entries).
  static Result<DirectoryBlock> parse(std::string bytes);

  size_t size() const { return size_; }
  /// The entry `index`, which must be below size(). The name lives as long as this object, and is a
  /// valid file name, or "." or "..".  Errors: corrupt.
  Result<Entry> at(size_t index) const;

 private:
  std::string bytes_;
  size_t size_ = 0;
};

/// Thread-safe.
class Reader {
 public:
  /// `image`: open for reading; it has to outlive this object.
  /// Errors: corrupt (not an EROFS image, or a damaged or truncated one), unsupported (compressed,
  /// in chunks, on several devices, blocks other than 4 KiB), io.
  static Result<Reader> open(const sys::Fd& image);

  uint64_t root() const { return superblock_.root; }  ///< the inode number of the root directory
  uint64_t blocks() const { return superblock_.blocks; }
  uint64_t inodes() const { return superblock_.inodes; }

  /// Errors: corrupt, unsupported (the content is compressed, or in chunks), io.
  Result<Inode> inode(uint64_t number) const;

  /// The places of `length` bytes of content from `offset` on. The second piece is in the tail.
  /// Bytes beyond the end of the content are left out, so both pieces may be empty.
  static std::array<Piece, 2> places(const Inode& inode, uint64_t offset, uint64_t length);
  /// Errors: io; corrupt if the file was truncated.
  Result<std::string> read(const Piece& piece) const;
  /// Checks that the image file has not been truncated, which splice(2) would not notice. Errors:
  /// corrupt.
  Result<void> check_length() const;

  /// Errors: corrupt (not a symbolic link, or a target not of 1 to 4095 bytes), io.
  Result<std::string> read_link(const Inode& inode) const;

  /// The number of blocks of a directory.
  static uint64_t directory_blocks(const Inode& directory);
  /// Errors: corrupt (not a directory, no such block), io.
  Result<DirectoryBlock> directory_block(const Inode& directory, uint64_t index) const;
  /// The inode number of `name` in the directory.  Errors: corrupt, io.
  Result<std::optional<uint64_t>> find(const Inode& directory, std::string_view name) const;

  /// The attributes in the order of the image.  Errors: corrupt (including more than 64 KiB of
  /// keys), io.
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
