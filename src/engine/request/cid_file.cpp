// SPDX-License-Identifier: Apache-2.0
#include "engine/request/cid_file.hpp"

#include <fcntl.h>

#include <utility>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {

CidFile::CidFile(CidFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)) {}

CidFile::~CidFile() {
  // If the removal fails, the user is left with an empty file.
  if (!path_.empty()) static_cast<void>(sys::remove_entry(sys::cwd(), path_).ok());
}

Result<CidFile> CidFile::create(const std::optional<std::string>& path) {
  CidFile file;
  if (!path) return file;
  auto fd = sys::open_at(sys::cwd(), *path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
  if (!fd.ok() && fd.error().kind == Kind::exists) {
    return make_error(Kind::exists,
                      "container ID file found, make sure the other container isn't "
                      "running or delete " +
                          *path);
  }
  file.fd_ = TRY_CTX(std::move(fd), "cannot create the container ID file");
  file.path_ = *path;
  return file;
}

Result<void> CidFile::write(const std::string& id) {
  if (path_.empty()) return {};
  std::string path = path_;
  TRY(sys::write_all(fd_, id, path));
  TRY(sys::close_checked(std::move(fd_), path));
  path_.clear();
  return {};
}

}  // namespace berth::engine
