// SPDX-License-Identifier: Apache-2.0
// All that a Reader shows of an image, by paths, to compare it with what others see; of an image
// that may be anybody's no more than is asked for.
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <map>
#include <string>

#include "erofs/reader.hpp"
#include "support/tree_facts.hpp"

namespace berth::erofs {

class Walk {
 public:
  struct Limits {
    size_t inodes = 100'000;
    size_t depth = 1200;
    uint64_t bytes = uint64_t{64} << 20;  ///< of the content of files, together
  };

  Walk(const Reader& reader, const Limits& limits) : reader_(reader), left_(limits) {}

  /// Stops where a limit is reached.  Errors: the reader's.
  Result<TreeLooks> all() {
    TRY(visit(reader_.root(), ""));
    // Paths are in another order than the walk: the first name is that of the whole tree.
    std::map<std::string, std::string> first;
    for (auto& [path, looks] : tree_) {
      looks.same_as = first.try_emplace(looks.same_as, path).first->second;
    }
    tree_.at("").same_as.clear();
    return std::move(tree_);
  }
  /// Whether all names that were listed are found, too: so it is where they are sorted.
  bool found_all() const { return found_all_; }

 private:
  Result<void> visit(uint64_t number, const std::string& path) {
    if (left_.inodes == 0 || left_.depth == 0) return {};
    --left_.inodes;
    Inode inode = TRY(reader_.inode(number));
    FileLooks& looks = tree_[path];
    looks.mode = inode.mode;
    looks.uid = inode.uid;
    looks.gid = inode.gid;
    looks.modified = inode.modified;
    looks.modified_nanoseconds = inode.modified_nanoseconds;
    looks.device = makedev(inode.device_major, inode.device_minor);
    looks.same_as = first_.try_emplace(number, path).first->second;
    for (const AttributePlace& attribute : TRY(reader_.attributes(inode))) {
      std::string value = TRY(reader_.read(attribute.value));
      looks.attributes[attribute.key] = std::move(value);
    }
    if (S_ISDIR(inode.mode)) return directory(inode, path);
    looks.links = inode.links;
    if (S_ISLNK(inode.mode)) {
      looks.content = TRY(reader_.read_link(inode));
    } else if (inode.size <= left_.bytes) {
      left_.bytes -= inode.size;
      for (const Piece& piece : Reader::places(inode, 0, inode.size)) {
        std::string part = TRY(reader_.read(piece));
        looks.content += part;
      }
    }
    return {};
  }

  Result<void> directory(const Inode& inode, const std::string& path) {
    --left_.depth;
    for (uint64_t i = 0; i < Reader::directory_blocks(inode) && left_.inodes > 0; ++i) {
      auto block = TRY(reader_.directory_block(inode, i));
      for (size_t at = 0; at < block.size() && left_.inodes > 0; ++at) {
        DirectoryBlock::Entry entry = TRY(block.at(at));
        if (entry.name == "." || entry.name == "..") continue;
        std::string name(entry.name);
        bool found = TRY(is_found(inode, name, entry.inode));
        found_all_ = found_all_ && found;
        TRY(visit(entry.inode, path.empty() ? name : path + "/" + name));
      }
    }
    ++left_.depth;
    return {};
  }

  Result<bool> is_found(const Inode& inode, const std::string& name, uint64_t number) {
    auto found = TRY(reader_.find(inode, name));
    return found && *found == number;
  }

  const Reader& reader_;
  Limits left_;
  TreeLooks tree_;
  std::map<uint64_t, std::string> first_;
  bool found_all_ = true;
};

}  // namespace berth::erofs
