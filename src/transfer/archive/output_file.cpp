// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "transfer/archive/members.hpp"

namespace berth::transfer {
namespace {

// The error is Docker's. A device would be replaced by a file, or overwritten.
Result<void> check_kind(const std::string& path, const struct stat& status) {
  const char* found = S_ISDIR(status.st_mode)                              ? "a directory"
                      : S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode) ? "a device"
                                                                           : nullptr;
  if (found == nullptr) return {};
  return make_error(
      Kind::usage, "invalid output path: " + quote(path) + " must be a regular file: got " + found);
}

}  // namespace

Result<OutputFile> OutputFile::open(const std::string& path, mode_t mode) {
  OutputFile output(path);
  if (path.starts_with("/dev/fd/")) {
    output.fd_ = TRY(open_input(path));
    return output;
  }
  auto there = TRY(sys::open_if_exists(sys::cwd(), path, O_PATH));
  if (there) {
    struct stat status = TRY(sys::stat_fd(*there, path));
    TRY(check_kind(path, status));
    if (!S_ISREG(status.st_mode)) {
      output.fd_ = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
      return output;
    }
  }
  std::string staged = path + ".tmp-" + sys::random_hex(6);
  output.fd_ = TRY(sys::open_at(sys::cwd(), staged, O_WRONLY | O_CREAT | O_EXCL, mode));
  output.staged_ = std::move(staged);
  return output;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      staged_(std::exchange(other.staged_, {})),
      fd_(std::move(other.fd_)) {}

OutputFile::~OutputFile() {
  if (!staged_.empty()) ignore(sys::remove_entry(sys::cwd(), staged_));
}

Result<void> OutputFile::finish() {
  TRY(sys::close_checked(std::move(fd_), path_));
  if (staged_.empty()) return {};
  TRY(sys::rename(sys::cwd(), staged_, sys::cwd(), path_));
  staged_.clear();
  return {};
}

}  // namespace berth::transfer
