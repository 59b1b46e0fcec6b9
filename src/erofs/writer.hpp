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
#include "erofs/output.hpp"
#include "erofs/tree.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/piece_writer.hpp"

namespace berth::erofs {

/// What tells an image from others. The same identity and members give the same bytes.
struct Identity {
  std::array<uint8_t, 16> uuid = {};
  int64_t build_time = 0;  ///< seconds
};

/// What the attributes of the root may take: it lies behind the superblock, in one block with it,
/// because its number has 16 bits there.
inline constexpr size_t kMaxRootAttributes =
    kBlock - kSuperblockAt - sizeof(Superblock) - sizeof(DiskInode);

/// Writes an EROFS image in one pass: files as they come, each by its size, which is known before;
/// directories in the end. A file that fits with its inode into a block lies right behind it, any
/// other in blocks of its own; inodes are gathered in blocks of their own. In memory are the names
/// alone, and what PieceWriter gathers.
/// Source: format.hpp.
class Writer {
 public:
  /// Bytes of a file, and the hole before them.
  struct Part {
    uint64_t hole = 0;
    std::string_view bytes;
  };
  /// The next part of a file's content; one without bytes is the last.
  using Content = std::function<Result<Part>()>;
  /// A file and where its content lies.
  struct File {
    std::shared_ptr<Node> node;
    uint64_t content = 0;
  };

  /// `file`: empty, open for reading and writing; it outlives the writer.
  /// `cache`: as PieceWriter takes it.
  Writer(const sys::Fd& file, const Identity& identity,
         sys::PieceWriter::Cache cache = sys::PieceWriter::Cache::through);

  /// `observer` is told of the content of files that lies in blocks of its own, front to back.
  void observe(std::function<void(uint64_t offset, std::string_view bytes)> observer) {
    data_.observe(std::move(observer));
  }

  /// `content` gives exactly `size` bytes. Holes of a block and more are not written: they are
  /// holes of the image's file, and zeros when the image is read.  Errors: io, unsupported (an
  /// image over 16 TiB), those of `content`.
  Result<File> add_file(const Facts& facts, const Attributes& attributes, uint64_t size,
                        const Content& content);
  /// `target`: 1 to 4095 bytes.
  Result<std::shared_ptr<Node>> add_symlink(const Facts& facts, std::string_view target);
  /// A device or a fifo.
  Result<std::shared_ptr<Node>> add_special(const Facts& facts, FileType type, unsigned major,
                                            unsigned minor);

  /// Bytes that were written as content.  Errors: io.
  Result<std::string> read(uint64_t address, size_t length);
  Result<std::string> read_link(const Node& symlink);

  /// Writes the directories below `root`, what hard links change, and the superblock; the root's
  /// attributes are at most kMaxRootAttributes.  Errors: io, unsupported as above.
  Result<void> finish(Directory& root);

 private:
  /// A directory, and where it goes.
  struct Plan {
    Directory* directory;
    uint64_t blocks_at = 0;  ///< of those that lie outside of the inode's
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
  size_t record_blocks_ = 1;  ///< how many are begun the next time
  uint64_t end_ = kBlock;     ///< what lies behind has not been given out
  uint32_t last_number_ = 0;
  uint64_t inodes_ = 0;        ///< that have a name
  std::vector<Node*> linked_;  ///< with more than one name
  std::string root_record_;
};

}  // namespace berth::erofs
