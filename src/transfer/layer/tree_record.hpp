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

/// What a layer's files were when they had been unpacked, in a file "tree" beside them, and what of
/// that is still so.
namespace berth::transfer {

inline constexpr const char* kTreeFile = "tree";

/// What is known of files before a tree is looked at: what was written into them, by inode.
struct WrittenFile {
  std::optional<uint64_t> content;  ///< checksum; nothing: it has holes
  bool attributes = false;          ///< it was given some
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
  uint64_t attributes = 0;          ///< checksum of all that were looked at; 0: none
  std::string link;                 ///< of a symbolic link; of a file's later names the first one
};

/// Looks at all that is below `tree` and writes the record of it as `directory`/tree.
/// `written`: the contents; files that are not in it are read. `left_out`: what the layer has
/// besides.  Errors: io.
Result<void> record_tree(const sys::Fd& tree, const WrittenFiles& written,
                         const std::vector<LeftOutDevice>& left_out, const sys::Fd& directory);

/// The entries of a record, an open file, by their paths; the root's is empty.
/// Errors: corrupt (no record), io.
using TreeEntries = std::unordered_map<std::string, TreeEntry>;
Result<TreeEntries> read_tree_record(const sys::Fd& record);

/// What is compared. Owners and attributes mean something to the user namespace that made the
/// layer alone.
enum class Depth { all, without_owners };

/// Whether the times of directories count: who was killed while linking files left later ones.
enum class DirectoryTimes { recorded, any };

struct TreeDifferences {
  uint64_t files = 0;  ///< that were read
  uint64_t bytes = 0;
  uint64_t count = 0;                   ///< of differences
  std::vector<std::string> texts;       ///< the first ones, a line each: "'usr/bin/a': is missing"
  std::vector<LeftOutDevice> left_out;  ///< what the record says; no differences
};

/// Compares what is below `tree` with its record, an open file, reading every file but those whose
/// content the record does not have. `stop` is asked often.
/// Memory: the names of files that have several.
/// Errors: corrupt (no record), interrupted, io.
Result<TreeDifferences> compare_tree(const sys::Fd& tree, const sys::Fd& record, Depth depth,
                                     const std::function<bool()>& stop,
                                     DirectoryTimes times = DirectoryTimes::recorded);

/// The same for a layer that is one file: checksums of its parts as they were written.
class ExtentRecord {
 public:
  /// Bytes that were written at `offset`; what continues the last ones is one part with them.
  void add(uint64_t offset, std::string_view bytes);
  /// Of those there are by now; each takes about 80 bytes of memory.
  size_t parts() const { return extents_.size(); }
  /// Adds what was not told, by reading it, and writes `directory`/tree.  Errors: io.
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

}  // namespace berth::transfer
