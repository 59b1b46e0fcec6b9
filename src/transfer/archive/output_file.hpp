// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::transfer {

/// The file or pipe to which the user wants an archive written. A file gets its name when it is
/// complete; until then, and on failure, an existing file of that name stays. A pipe is written
/// directly, and so is "/dev/fd/N".
class OutputFile {
 public:
  /// Errors: usage (a directory, a device), not_found, denied.
  static Result<OutputFile> open(const std::string& path, mode_t mode);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  const sys::Fd& fd() const { return fd_; }
  /// Errors: io.
  Result<void> finish();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::string staged_;  ///< empty: the file has its name already
  sys::Fd fd_;
};

}  // namespace berth::transfer
