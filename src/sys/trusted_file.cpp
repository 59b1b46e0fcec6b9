// SPDX-License-Identifier: Apache-2.0
#include "sys/trusted_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "sys/file.hpp"
#include "sys/identity.hpp"

namespace berth::sys {
namespace {

// What the kernel shows for an owner that has no id in this user namespace: there, that is how the
// machine's root looks, and nobody of this namespace can take the file over.
constexpr uid_t kOverflowUid = 65534;

bool is_ours(uid_t owner) {
  if (owner == 0 || owner == effective_uid()) return true;
  return owner == kOverflowUid && !in_initial_user_namespace();
}

Result<void> check(const struct stat& info, const std::string& path) {
  if (!S_ISREG(info.st_mode)) {
    return make_error(Kind::corrupt, "read " + quoted(path) + ": not a regular file");
  }
  if (!is_ours(info.st_uid)) {
    return make_error(Kind::denied, "read " + quoted(path) + ": it belongs to somebody else",
                      "chown root " + path);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error(Kind::denied, "read " + quoted(path) + ": it can be written by others",
                      "chmod go-w " + path);
  }
  return {};
}

}  // namespace

Result<std::optional<std::string>> read_trusted_file_if_exists(const Fd& dir,
                                                               const std::string& name,
                                                               size_t max_bytes) {
  // O_NONBLOCK: a FIFO would make us wait for its writer.
  auto file = TRY(open_if_exists(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!file) return std::optional<std::string>();
  struct stat info = TRY(stat_fd(*file, name));
  TRY(check(info, name));
  return std::optional<std::string>(TRY(read_all(*file, name, max_bytes)));
}

Result<std::optional<std::string>> read_trusted_file_if_exists(const std::string& path,
                                                               size_t max_bytes) {
  return read_trusted_file_if_exists(cwd(), path, max_bytes);
}

}  // namespace berth::sys
