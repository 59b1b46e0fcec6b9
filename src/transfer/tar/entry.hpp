// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace berth::transfer {

/// One member of a tar, interpreted as Go's archive/tar (and so docker) does.
struct TarEntry {
  enum class Type { file, hard_link, symlink, character_device, block_device, directory, fifo };
  Type type = Type::file;
  std::string path;  ///< as written: may be absolute or contain ".."; ends with '/' for a directory
  std::string link;  ///< target of a hard or symbolic link
  uint32_t mode = 0;  ///< permission bits, 07777
  uint64_t uid = 0;
  uint64_t gid = 0;
  uint64_t size = 0;  ///< of the content, including holes; 0 for everything but files
  bool sparse = false;
  int64_t mtime = 0;
  uint32_t mtime_nanoseconds = 0;
  uint64_t device_major = 0;
  uint64_t device_minor = 0;
  /// From SCHILY.xattr.*, LIBARCHIVE.xattr.* and SCHILY.acl.*, each key once. An access list that
  /// cannot be parsed has an empty value.
  std::vector<std::pair<std::string, std::string>> xattrs;
};

}  // namespace berth::transfer
