// SPDX-License-Identifier: Apache-2.0
#include "sys/file/regular.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

Result<std::optional<Fd>> open_found(Result<Fd> held, const std::string& name) {
  bool absent =
      !held.ok() && (held.error().kind == Kind::not_found || held.error().sys_errno == ENOTDIR);
  if (absent) return std::optional<Fd>();
  Fd found = TRY(std::move(held));
  return open_regular(found, name);
}

}  // namespace

Result<std::optional<Fd>> open_regular(const Fd& held, const std::string& name) {
  struct stat info = TRY(stat_fd(held, name));
  if (!S_ISREG(info.st_mode)) return std::optional<Fd>();
  // O_NONBLOCK: does not wait for a process that holds a lease on the file (fcntl(2) F_SETLEASE).
  auto file = open_at(cwd(), fd_path(held), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.ok()) return sys_error(file.error().sys_errno, "open " + quote(name));
  return std::optional<Fd>(std::move(*file));
}

Result<std::optional<Fd>> find_regular(const Fd& dir, const std::string& name) {
  return open_found(open_at(dir, name, O_PATH | O_NOFOLLOW), name);
}

Result<std::optional<Fd>> find_regular_in_root(const Fd& root, const std::string& path) {
  return open_found(open_in_root(root, path, O_PATH), path);
}

Result<std::optional<std::string>> read_regular_in_root(const Fd& root, const std::string& path,
                                                        size_t max_bytes) {
  auto file = TRY(find_regular_in_root(root, path));
  if (!file) return std::optional<std::string>();
  return std::optional<std::string>(TRY(read_all(*file, path, max_bytes)));
}

}  // namespace berth::sys
