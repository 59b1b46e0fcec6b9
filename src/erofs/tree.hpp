// SPDX-License-Identifier: Apache-2.0
// The tree of an image in memory while the image is written: names, and addresses of inodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "erofs/format.hpp"

namespace berth::erofs {

/// The maximal size of an inode's attributes: a 16-bit field counts their 32-bit words.
inline constexpr size_t kMaxAttributes = 12 + 4 * 0xfffe;

/// The extended attributes of one inode, in their form on disk.
class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Appends an attribute. Call it once for each key.
  /// Errors: unsupported (a prefix that EROFS lacks, a name or value that is too long for it, no
  /// room left).
  Result<void> add(std::string_view key, std::string_view value);

  /// The attributes with their header, a multiple of 4 bytes; empty if there are none.
  const std::string& bytes() const { return bytes_; }

 private:
  size_t max_bytes_ = kMaxAttributes;
  std::string bytes_;
};

/// The attributes that every inode has.
struct Facts {
  uint32_t mode = 0;  ///< permission bits, 07777
  uint32_t uid = 0;
  uint32_t gid = 0;
  int64_t modified = 0;
  uint32_t modified_nanoseconds = 0;
};

/// One inode. Two names that share a Node are hard links.
struct Node {
  FileType type = FileType::file;
  bool whiteout = false;  ///< a character device 0:0
  uint32_t links = 0;     ///< counted at the end
  uint64_t address = 0;   ///< of the inode; for a directory it is set at the end
};

struct Directory : Node {
  Directory() { type = FileType::directory; }

  Facts facts;
  Attributes attributes;
  Directory* parent = nullptr;  ///< null for the root
  std::string name;             ///< the name in the parent
  bool opaque = false;          ///< a note for the code that fills the tree; not written
  /// Sorted by bytes, as in an image.
  std::map<std::string, std::shared_ptr<Node>, std::less<>> children;
};

/// The child, or null.
Node* find(const Directory& directory, std::string_view name);
/// `node` itself when it is a directory, else null.
Directory* as_directory(Node* node);
const Directory* as_directory(const Node* node);
/// "usr/bin"; empty for the root.
std::string path_of(const Directory& directory);

/// An entry of a directory, for writing.
struct NamedInode {
  std::string_view name;
  const Node* node;
};
/// Receives the entries of one block and their size in bytes.
using BlockVisitor =
    std::function<Result<void>(const std::vector<NamedInode>& entries, size_t size)>;

/// Divides a directory, including "." and "..", into blocks that are as full as possible; only the
/// last may be much shorter than a block.  Errors: those of `visit`.
Result<void> for_each_block(const Directory& directory, const BlockVisitor& visit);

/// One block of a directory: its entries, then their names.
std::string encode_block(const std::vector<NamedInode>& entries);

}  // namespace berth::erofs
