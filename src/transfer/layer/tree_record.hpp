// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/layer/rules.hpp"

/// The attributes of a layer's files after unpacking, in a file "tree" next to them, and the
/// comparison with the present ones.
namespace berth::transfer {

inline constexpr const char* kTreeFile = "tree";

/// Facts about files that are known before the tree is examined: the written contents, by inode.
struct WrittenFile {
  std::optional<uint64_t> content;  ///< checksum; nothing: it has holes
  bool attributes = false;          ///< attributes were set on it
};
using WrittenFiles = std::unordered_map<uint64_t, WrittenFile>;

/// One entry of a tree.
struct TreeEntry {
  uint32_t mode = 0;  ///< with the type
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;  ///< of regular files
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  uint64_t device = 0;
  std::optional<uint64_t> content;  ///< checksum of a regular file
  uint64_t attributes = 0;          ///< checksum of all recorded attributes; 0: none
  std::string link;  ///< target of a symbolic link; for later names of a file its first name
};

/// Examines everything below `tree` and writes its record as `directory`/tree.
/// `written`: files with a known checksum; others are read. `left_out`: devices of the layer that
/// could not be made.  Errors: io.
Result<void> record_tree(const sys::Fd& tree, const WrittenFiles& written,
                         const std::vector<LeftOutDevice>& left_out, const sys::Fd& directory);

using TreeEntries = std::unordered_map<std::string, TreeEntry>;
/// The entries of a record, an open file, by path; the path of the root is empty.
/// Errors: corrupt (no record), io.
Result<TreeEntries> read_tree_record(const sys::Fd& record);

/// Which facts are compared. Owners and attributes are meaningful only in the user namespace that
/// made the layer.
enum class Depth { all, without_owners };

/// Whether the times of directories count: a process killed while linking files left later ones.
enum class DirectoryTimes { recorded, any };

struct TreeDifferences {
  uint64_t files = 0;  ///< number of files that were read
  uint64_t bytes = 0;
  uint64_t count = 0;                   ///< of differences
  std::vector<std::string> texts;       ///< the first ones, a line each: "'usr/bin/a': is missing"
  std::vector<LeftOutDevice> left_out;  ///< as in the record; not differences
};

/// Compares everything below `tree` with its record, an open file, and reads every file whose
/// checksum is in the record. Calls `stop` often. Keeps in memory the names of files that have
/// several hard links.
/// Errors: corrupt (no record), interrupted, io.
Result<TreeDifferences> compare_tree(const sys::Fd& tree, const sys::Fd& record, Depth depth,
                                     const std::function<bool()>& stop,
                                     DirectoryTimes times = DirectoryTimes::recorded);

/// The record of a layer that is one EROFS image: checksums of its parts as they were written.
class ExtentRecord {
 public:
  /// Adds bytes that were written at `offset`; contiguous ones extend the last part.
  void add(uint64_t offset, std::string_view bytes);
  /// The number of parts so far; each takes about 80 bytes of memory.
  size_t parts() const { return extents_.size(); }
  /// Adds the missing parts by reading them, and writes `directory`/tree.  Errors: io.
  Result<void> write(const sys::Fd& image, const sys::Fd& directory);

 private:
  struct Extent {
    uint64_t length = 0;
    uint64_t content = 0;
  };
  std::map<uint64_t, Extent> extents_;
};
Result<TreeDifferences> compare_extents(const sys::Fd& image, const sys::Fd& record,
                                        const std::function<bool()>& stop);

/// A running CRC-64 (ECMA-182, reflected), computed by ISA-L with the processor's carry-less
/// multiplication. It detects changes by a disk, a mistake or a power cut, at a twentieth of the
/// cost of SHA-256. It is not protection against a process that can write the store.
uint64_t checksum(uint64_t before, std::string_view bytes);

}  // namespace berth::transfer
