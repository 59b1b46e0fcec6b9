// SPDX-License-Identifier: Apache-2.0
// All that a program can see of a tree of files, to compare two of them.
#pragma once

#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace berth {

struct FileLooks {
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  int64_t modified = 0;
  uint32_t modified_nanoseconds = 0;
  uint64_t device = 0;
  uint64_t links = 0;   ///< of all but directories
  std::string content;  ///< of a file, the target of a symbolic link
  std::string same_as;  ///< the first path of this inode
  std::map<std::string, std::string> attributes;

  bool operator==(const FileLooks&) const = default;
};
/// The content of a file that this user may not read.
inline constexpr const char* kUnreadable = "(unreadable)";
/// By path; that of the root is empty.
using TreeLooks = std::map<std::string, FileLooks>;

inline std::map<std::string, std::string> attributes_of(const std::string& path) {
  std::map<std::string, std::string> attributes;
  std::string keys(
      static_cast<size_t>(std::max<ssize_t>(::llistxattr(path.c_str(), nullptr, 0), 0)), '\0');
  ssize_t size = ::llistxattr(path.c_str(), keys.data(), keys.size());
  keys.resize(size < 0 ? 0 : static_cast<size_t>(size));
  for (size_t at = 0; at < keys.size();) {
    std::string key = keys.c_str() + at;
    at += key.size() + 1;
    std::string value(65536, '\0');
    ssize_t length = ::lgetxattr(path.c_str(), key.c_str(), value.data(), value.size());
    value.resize(length < 0 ? 0 : static_cast<size_t>(length));
    attributes[key] = value;
  }
  return attributes;
}

inline FileLooks look_at(const std::string& path) {
  struct stat status {};
  ::lstat(path.c_str(), &status);
  FileLooks looks;
  looks.mode = status.st_mode;
  looks.uid = status.st_uid;
  looks.gid = status.st_gid;
  looks.modified = status.st_mtim.tv_sec;
  looks.modified_nanoseconds = static_cast<uint32_t>(status.st_mtim.tv_nsec);
  bool device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
  looks.device = device ? status.st_rdev : 0;
  looks.links = S_ISDIR(status.st_mode) ? 0 : status.st_nlink;
  if (S_ISLNK(status.st_mode)) looks.content = std::filesystem::read_symlink(path);
  if (S_ISREG(status.st_mode)) {
    looks.content.resize(static_cast<size_t>(status.st_size));
    std::ifstream file(path, std::ios::binary);
    file.read(looks.content.data(), status.st_size);
    looks.content.resize(static_cast<size_t>(file.gcount()));
    if (!file.is_open()) looks.content = kUnreadable;
  }
  looks.attributes = attributes_of(path);
  return looks;
}

/// As the kernel shows it.
inline TreeLooks look_at_tree(const std::string& root) {
  TreeLooks tree;
  std::map<std::string, uint64_t> inodes;
  tree[""] = look_at(root);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    std::string path = entry.path().lexically_relative(root);
    tree[path] = look_at(entry.path());
    struct stat status {};
    ::lstat(entry.path().c_str(), &status);
    inodes[path] = status.st_ino;
  }
  std::map<uint64_t, std::string> first;
  for (const auto& [path, inode] : inodes) {
    tree[path].same_as = first.try_emplace(inode, path).first->second;
  }
  return tree;
}

/// Without the times of what was made with no time given: that of its making, or none.
inline TreeLooks with_times_until(TreeLooks tree, int64_t last) {
  for (auto& [path, looks] : tree) {
    if (looks.modified <= last && looks.modified != 0) continue;
    looks.modified = 0;
    looks.modified_nanoseconds = 0;
  }
  return tree;
}

/// What differs first, in words; empty: nothing. What `other` could not read is not compared.
inline std::string difference(const TreeLooks& one, const TreeLooks& other) {
  for (const auto& [path, looks] : one) {
    auto found = other.find(path);
    if (found == other.end()) return "'" + path + "' is in the first tree alone";
    FileLooks there = found->second;
    if (there.content == kUnreadable) there.content = looks.content;
    if (looks == there) continue;
    auto text = [](const FileLooks& file) {
      std::string line =
          "mode " + std::to_string(file.mode) + " owner " + std::to_string(file.uid) + ":" +
          std::to_string(file.gid) + " time " + std::to_string(file.modified) + "." +
          std::to_string(file.modified_nanoseconds) + " device " + std::to_string(file.device) +
          " links " + std::to_string(file.links) + " size " + std::to_string(file.content.size()) +
          " same as '" + file.same_as + "' attributes";
      for (const auto& [key, value] : file.attributes) {
        line += " " + key + "(" + std::to_string(value.size()) + ")";
      }
      return line;
    };
    std::string content = looks.content == there.content ? "" : " (contents differ)";
    return "'" + path + "': " + text(looks) + " / " + text(there) + content;
  }
  for (const auto& [path, looks] : other) {
    if (!one.contains(path)) return "'" + path + "' is in the second tree alone";
  }
  return {};
}

}  // namespace berth
