// SPDX-License-Identifier: Apache-2.0
// Reads an EROFS image by the rules of its format, independently of what writes one, and believes
// nothing: every number is in bounds, names are sorted, nothing overlaps, every count is right.
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/tree_facts.hpp"

namespace berth {

class ErofsReader {
 public:
  /// Errors: std::runtime_error that says what is wrong with the image.
  static TreeLooks read(std::string_view image) {
    ErofsReader reader(image);
    reader.superblock();
    reader.directory(reader.root_, reader.root_, "");
    reader.finish();
    return std::move(reader.tree_);
  }

 private:
  static constexpr uint64_t kBlock = 4096;

  struct Inode {
    FileLooks looks;
    uint64_t size = 0;
    uint64_t links = 0;
    std::string content;
  };

  explicit ErofsReader(std::string_view image) : image_(image) {}

  static void require(bool condition, const std::string& what) {
    if (!condition) throw std::runtime_error(what);
  }

  uint64_t number(uint64_t at, size_t width) const {
    std::string_view bytes = part(at, width);
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
  }

  std::string_view part(uint64_t at, uint64_t length) const {
    require(at <= image_.size() && length <= image_.size() - at, "bytes beyond the end");
    return image_.substr(at, length);
  }

  void superblock() {
    require(image_.size() % kBlock == 0, "not whole blocks");
    require(number(1024, 4) == 0xe0f5e1e2, "no magic");
    require(number(1024 + 12, 1) == 12, "another size of blocks");
    require(number(1024 + 36, 4) == image_.size() / kBlock, "a wrong number of blocks");
    require(number(1024 + 40, 4) == 0 && number(1024 + 80, 4) == 0, "features");
    std::string first(part(1024, kBlock - 1024));
    first.replace(4, 4, 4, '\0');
    uint32_t sum = 0xffffffff;
    for (char byte : first) {
      sum ^= static_cast<uint8_t>(byte);
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
    }
    require(number(1024 + 4, 4) == sum, "a wrong checksum");
    root_ = number(1024 + 14, 2);
    take(1024, 128);
  }

  /// Bytes that belong to nothing else.
  void take(uint64_t at, uint64_t length) {
    part(at, length);
    if (length == 0) return;
    auto next = taken_.lower_bound(at);
    require(next == taken_.end() || next->first >= at + length, "two things at one place");
    require(next == taken_.begin() || std::prev(next)->second <= at, "two things at one place");
    taken_[at] = at + length;
  }

  std::map<std::string, std::string> attributes(uint64_t at, uint64_t size) const {
    std::map<std::string, std::string> found;
    static const std::map<uint64_t, std::string> kPrefixes = {{1, "user."},
                                                              {2, "system.posix_acl_access"},
                                                              {3, "system.posix_acl_default"},
                                                              {4, "trusted."},
                                                              {6, "security."}};
    require(number(at + 4, 1) == 0 && size > 12, "shared attributes, or none");
    uint64_t end = at + size;
    for (at += 12; at < end;) {
      uint64_t name = number(at, 1);
      uint64_t value = number(at + 2, 2);
      uint64_t prefix = number(at + 1, 1);
      require(kPrefixes.contains(prefix), "an unknown prefix of an attribute");
      require(at + 4 + name + value <= end, "an attribute beyond its inode's");
      std::string key = kPrefixes.at(prefix) + std::string(part(at + 4, name));
      require(found.emplace(key, part(at + 4 + name, value)).second, "an attribute twice");
      at = (at + 4 + name + value + 3) / 4 * 4;
    }
    require(at == end, "attributes that do not end");
    return found;
  }

  Inode inode(uint64_t nid) {
    uint64_t at = nid * 32;
    Inode inode;
    uint64_t layout = number(at, 2) >> 1;
    require((number(at, 2) & 1) == 1 && (layout == 0 || layout == 2), "a format of an inode");
    uint64_t icount = number(at + 2, 2);
    uint64_t attributes_size = icount == 0 ? 0 : 12 + 4 * (icount - 1);
    FileLooks& looks = inode.looks;
    looks.mode = static_cast<uint32_t>(number(at + 4, 2));
    inode.size = number(at + 8, 8);
    uint64_t where = number(at + 16, 4);
    require(numbers_.insert(number(at + 20, 4)).second, "an inode's number twice");
    looks.uid = static_cast<uint32_t>(number(at + 24, 4));
    looks.gid = static_cast<uint32_t>(number(at + 28, 4));
    looks.modified = static_cast<int64_t>(number(at + 32, 8));
    looks.modified_nanoseconds = static_cast<uint32_t>(number(at + 40, 4));
    inode.links = number(at + 44, 4);
    if (attributes_size != 0) looks.attributes = attributes(at + 64, attributes_size);
    uint64_t record = 64 + attributes_size;
    if (S_ISCHR(looks.mode) || S_ISBLK(looks.mode)) {
      looks.device = makedev(where >> 8 & 0xfff, (where & 0xff) | (where >> 12 & 0xfff00));
    } else {
      uint64_t tail = layout == 2 ? inode.size % kBlock : 0;
      require(layout != 2 || tail != 0, "a tail of nothing");
      uint64_t outside = inode.size - tail;
      require(outside == 0 || where != 0xffffffff, "blocks at no place");
      if (outside != 0) {
        inode.content = part(where * kBlock, outside);
        take(where * kBlock, outside);
      }
      inode.content += part(at + record, tail);
      record += tail;
      require(tail == 0 || at / kBlock == (at + record - 1) / kBlock, "a tail in two blocks");
    }
    take(at, record);
    return inode;
  }

  void directory(uint64_t nid, uint64_t parent, const std::string& path) {
    require(++depth_ < 1200, "too deep");
    require(directories_.insert(nid).second, "a directory twice");
    Inode inode = this->inode(nid);
    require(S_ISDIR(inode.looks.mode), "no directory");
    tree_[path] = inode.looks;
    tree_[path].same_as = path;
    std::string last;
    uint64_t subdirectories = 0;
    bool self = false;
    bool up = false;
    for (uint64_t at = 0; at < inode.content.size(); at += kBlock) {
      std::string_view block = std::string_view(inode.content).substr(at, kBlock);
      auto value = [&](uint64_t offset, size_t width) {
        require(offset + width <= block.size(), "an entry beyond its block");
        uint64_t result = 0;
        for (size_t i = width; i-- > 0;) {
          result = result << 8 | static_cast<uint8_t>(block[offset + i]);
        }
        return result;
      };
      uint64_t first = value(8, 2);
      require(first % 12 == 0 && first > 0 && first <= block.size(), "a first name nowhere");
      for (uint64_t i = 0; i < first / 12; ++i) {
        uint64_t begin = value(i * 12 + 8, 2);
        bool is_last = (i + 1) * 12 == first;
        uint64_t end = is_last ? block.size() : value(i * 12 + 20, 2);
        require(begin < end && end <= block.size(), "a name nowhere");
        std::string name(block.substr(begin, end - begin));
        if (is_last) name.resize(std::min(name.find('\0'), name.size()));
        require(!name.empty() && name.size() <= 255 && name.find('/') == name.npos &&
                    name.find('\0') == name.npos,
                "a name that is none");
        require(last < name, "names that are not sorted");
        last = name;
        uint64_t child = value(i * 12, 8);
        uint64_t type = value(i * 12 + 10, 1);
        if (name == ".") {
          require(child == nid && type == 2, "another itself");
          self = true;
        } else if (name == "..") {
          require(child == parent && type == 2, "another parent");
          up = true;
        } else {
          if (type == 2) ++subdirectories;
          entry(child, type, nid, path.empty() ? name : path + "/" + name);
        }
      }
    }
    require(self && up, "a directory without itself or its parent");
    require(inode.links == 2 + subdirectories, "a wrong number of links");
    --depth_;
  }

  void entry(uint64_t nid, uint64_t type, uint64_t parent, const std::string& path) {
    if (type == 2) return directory(nid, parent, path);
    static const std::map<uint64_t, uint32_t> kTypes = {
        {1, S_IFREG}, {3, S_IFCHR}, {4, S_IFBLK}, {5, S_IFIFO}, {7, S_IFLNK}};
    auto [known, is_new] = files_.try_emplace(nid);
    if (is_new) {
      known->second = inode(nid);
      known->second.looks.links = known->second.links;
      known->second.looks.content = std::move(known->second.content);
      known->second.looks.same_as = path;
    }
    const FileLooks& looks = known->second.looks;
    require(kTypes.contains(type) && (looks.mode & S_IFMT) == kTypes.at(type), "another type");
    ++names_[nid];
    tree_[path] = looks;
  }

  void finish() {
    require(number(1024 + 16, 8) == files_.size() + directories_.size(),
            "a wrong number of inodes");
    for (const auto& [nid, count] : names_) {
      require(files_.at(nid).links == count, "a wrong number of links");
    }
    // Paths are in another order than directories: the first name is that of the whole tree.
    std::map<std::string, std::string> first;
    for (auto& [path, looks] : tree_) {
      looks.same_as = first.try_emplace(looks.same_as, path).first->second;
    }
    tree_.at("").same_as.clear();
  }

  std::string_view image_;
  uint64_t root_ = 0;
  int depth_ = 0;
  TreeLooks tree_;
  std::map<uint64_t, uint64_t> taken_;
  std::map<uint64_t, Inode> files_;
  std::map<uint64_t, uint64_t> names_;
  std::set<uint64_t> directories_;
  std::set<uint64_t> numbers_;
};

}  // namespace berth
