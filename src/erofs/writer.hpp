// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "erofs/tree.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/piece_writer.hpp"

namespace berth::erofs {

/// A group of blocks for small records. They are filled in parallel, and written together when the
/// next record fits into none of them.
class RecordBlocks {
 public:
  explicit RecordBlocks(const sys::Fd& file) : file_(&file) {}

  /// Whether a record of `size` bytes, at most a block, still fits.
  bool fits(size_t size) const;
  /// Puts a record into the block in which it leaves the least room, and returns its address. Only
  /// if fits() is true.
  uint64_t put(std::string_view record);
  /// Whether the bytes at `address` are still in memory, and can be read and replaced.
  bool holds(uint64_t address) const;
  std::string read(uint64_t address, size_t length) const;
  void replace(uint64_t address, std::string_view bytes);
  /// Starts with `count` empty blocks at `address`, after flush().
  void begin(uint64_t address, size_t count);
  Result<void> flush();

 private:
  size_t best(size_t size) const;

  const sys::Fd* file_;
  uint64_t start_ = 0;
  std::vector<uint32_t> used_;  ///< number of used bytes of each block
  std::string bytes_;
};

/// Identifies an image. The same identity and members give the same bytes.
struct Identity {
  std::array<uint8_t, 16> uuid = {};
  int64_t build_time = 0;  ///< seconds
};

/// The limit for the attributes of the root. The root's inode is behind the superblock, in the same
/// block, because the superblock has only 16 bits for its number.
inline constexpr size_t kMaxRootAttributes =
    kBlock - kSuperblockAt - sizeof(Superblock) - sizeof(DiskInode);

/// Writes an EROFS image in one pass: files in order of arrival, with sizes that are known before;
/// directories at the end. The content of a file is directly behind its inode if both fit into one
/// block, else in blocks of its own. Inodes are collected in separate blocks. Memory holds only the
/// names and the buffers of PieceWriter.
/// Source: format.hpp.
class Writer {
 public:
  /// Bytes of a file, and the hole before them.
  struct Part {
    uint64_t hole = 0;
    std::string_view bytes;
  };
  /// Returns the next part of a file's content; a part without bytes is the last.
  using Content = std::function<Result<Part>()>;
  /// A file and the place of its content.
  struct File {
    std::shared_ptr<Node> node;
    uint64_t content = 0;
  };

  /// `file`: empty, open for reading and writing; it has to outlive the writer.
  /// `cache`: as for PieceWriter.
  Writer(const sys::Fd& file, const Identity& identity,
         sys::PieceWriter::Cache cache = sys::PieceWriter::Cache::through);

  /// `observer` receives the file content that is not behind an inode, in order of offsets.
  void observe(std::function<void(uint64_t offset, std::string_view bytes)> observer) {
    data_.observe(std::move(observer));
  }

  /// `content` returns exactly `size` bytes. Holes of at least a block become holes of the image
  /// file; a reader of the image sees zeros.  Errors: io, unsupported (an image over 16 TiB), those
  /// of `content`.
  Result<File> add_file(const Facts& facts, const Attributes& attributes, uint64_t size,
                        const Content& content);
  /// `target`: 1 to 4095 bytes.
  Result<std::shared_ptr<Node>> add_symlink(const Facts& facts, std::string_view target);
  /// A device or a fifo.
  Result<std::shared_ptr<Node>> add_special(const Facts& facts, FileType type, unsigned major,
                                            unsigned minor);

  /// Reads back bytes written as content.  Errors: io.
  Result<std::string> read(uint64_t address, size_t length);
  Result<std::string> read_link(const Node& symlink);

  /// Writes the directories below `root`, corrects the link counts of files with several names, and
  /// writes the superblock. The attributes of the root may have at most kMaxRootAttributes bytes.
  /// Errors: io, unsupported as above.
  Result<void> finish(Directory& root);

 private:
  /// A directory and its place.
  struct Plan {
    Directory* directory;
    uint64_t blocks_at = 0;  ///< the first block that is not the inode's
    uint64_t size = 0;
    uint32_t subdirectories = 0;
    Layout layout = Layout::blocks;
  };

  Result<uint64_t> allocate(uint64_t size);
  Result<uint64_t> put_record(const std::string& record);
  Result<std::shared_ptr<Node>> put_node(FileType type, const std::string& record);
  DiskInode inode(const Facts& facts, FileType type, size_t attributes);
  Result<void> copy_content(uint64_t address, uint64_t size, const Content& content);

  Result<void> count_links(Directory& directory, std::vector<Plan>& plans);
  Result<void> place(Plan& plan);
  Result<void> place_all(std::vector<Plan>& plans);
  Result<void> write_directory(const Plan& plan, sys::PieceWriter& inodes);
  Result<void> write_links();
  Result<void> write_first_block();

  const sys::Fd* file_;
  Identity identity_;
  sys::PieceWriter data_;
  RecordBlocks records_;
  size_t record_blocks_ = 1;  ///< number of blocks for the next group
  uint64_t end_ = kBlock;     ///< everything behind it is not allocated
  uint32_t last_number_ = 0;
  uint64_t inodes_ = 0;        ///< number of inodes with a name
  std::vector<Node*> linked_;  ///< nodes with more than one name
  std::string root_record_;
};

}  // namespace berth::erofs
