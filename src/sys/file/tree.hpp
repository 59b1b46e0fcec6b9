// SPDX-License-Identifier: Apache-2.0
// Calls for unpacking archives, in addition to file.hpp and mode.hpp: links and attributes by
// handle.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// The extended attribute `key` of an open file (not O_PATH), at most 64 KiB; nothing when the file
/// does not have the attribute or the file system has no such attributes. fgetxattr(2)
Result<std::optional<std::string>> read_attribute(const Fd& fd, const std::string& key);

/// The names of the extended attributes of an open file (not O_PATH), at most 64 KiB; none where
/// the file system has no such attributes. flistxattr(2)
Result<std::vector<std::string>> list_attributes(const Fd& fd);

/// Removes an extended attribute; no error if it is missing or if the file system has no
/// attributes. Errors: denied, io. fremovexattr(2)
Result<void> remove_attribute(const Fd& fd, const std::string& key);

/// linkat(2) without following a link. Errors: exists, not_found.
Result<void> make_hard_link(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                            const std::string& to);

/// Sets an extended attribute. fsetxattr(2). Errors: denied, unsupported (the file system has no
/// such attributes).
Result<void> write_attribute(const Fd& fd, const std::string& key, std::string_view value);

/// A regular file, mapped read-only into memory; empty for an empty file. mmap(2)
class MappedFile {
 public:
  static Result<MappedFile> map(const Fd& fd, const std::string& name);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

/// The umask of this process, read without changing it. /proc/self/status
Result<mode_t> current_umask();

}  // namespace berth::sys
