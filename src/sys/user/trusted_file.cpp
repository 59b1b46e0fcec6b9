// SPDX-License-Identifier: Apache-2.0
#include "sys/user/trusted_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::sys {
namespace {

// The kernel shows this id for an owner that has no id in this user namespace. The machine's root
// is shown so, and no user of this namespace can become the owner of such a file.
constexpr uid_t kOverflowUid = 65534;

bool is_ours(uid_t owner) {
  if (owner == 0 || owner == effective_uid()) return true;
  return owner == kOverflowUid && !in_initial_user_namespace();
}

// A group of the user alone, which may write with a umask of 002, counts as the user. Systems that
// make such groups give them the user's number; a primary group with another number may be shared.
bool others_write(const struct stat& info) {
  bool own_group =
      effective_uid() != 0 && info.st_gid == effective_gid() && effective_gid() == effective_uid();
  return (info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && !own_group);
}

// After a change of owner or mode, processes that have the file open for writing can still write to
// it. For a directory that is no danger, because each entry is checked again.
std::string how_to_own(const struct stat& info, const std::string& command,
                       const std::string& path) {
  if (S_ISDIR(info.st_mode)) return command + " " + path;
  return "a copy in its place, which nobody else has open: cp " + path + " COPY";
}

Result<void> check_owner(const struct stat& info, const std::string& what,
                         const std::string& path) {
  if (!is_ours(info.st_uid)) {
    return make_error(Kind::denied, what + ": it belongs to another user",
                      how_to_own(info, "chown root", path));
  }
  if (others_write(info)) {
    return make_error(Kind::denied, what + ": it is writable by others",
                      how_to_own(info, "chmod go-w", path));
  }
  return {};
}

// Whether the owner is shown by its own id: the overflow id stands for all unmapped users, not only
// for the machine's root.
bool is_known(const struct stat& info) {
  return info.st_uid == 0 || info.st_uid == effective_uid();
}

Error somebody_elses(const struct stat& info, const std::string& path) {
  return make_error(Kind::denied, "use " + quote(path) + ": it belongs to another user",
                    how_to_own(info, "chown root", path));
}

bool everybody_adds(const struct stat& info) {
  return (info.st_mode & S_ISVTX) != 0 && others_write(info);
}

// In a sticky directory users cannot remove or replace each other's entries.
Result<void> check_directory(const struct stat& info, const std::string& path) {
  if (everybody_adds(info) && is_ours(info.st_uid)) return {};
  return check_owner(info, "use directory " + quote(path), path);
}

// Checks the parent directories, because write access to one of them suffices to replace our file.
// True if any user may have made the entries of the last directory: it is /tmp or another sticky
// directory, or is below one without an owner known by id in between.
Result<bool> check_parents(const std::string& path) {
  bool anybodys = false;
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string parent = slash == 0 ? "/" : path.substr(0, slash);
    int follow = anybodys ? O_NOFOLLOW : 0;
    Fd directory = TRY(open_at(cwd(), parent, O_PATH | O_DIRECTORY | follow));
    struct stat info = TRY(stat_fd(directory, parent));
    TRY(check_directory(info, parent));
    anybodys = everybody_adds(info) || (anybodys && !is_known(info));
  }
  return anybodys;
}

Result<std::string> read_checked(const Fd& file, const std::string& path, size_t max_bytes) {
  struct stat info = TRY(stat_fd(file, path));
  if (!S_ISREG(info.st_mode)) {
    return make_error(Kind::corrupt, "read " + quote(path) + ": not a regular file");
  }
  TRY(check_owner(info, "read " + quote(path), path));
  return read_all(file, path, max_bytes);
}

}  // namespace

Result<std::optional<std::string>> read_trusted_file_if_exists(const Fd& dir,
                                                               const std::string& name,
                                                               size_t max_bytes) {
  // O_NONBLOCK, because opening a FIFO would block until it has a writer.
  auto file = TRY(open_if_exists(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!file) return std::optional<std::string>();
  return std::optional<std::string>(TRY(read_checked(*file, name, max_bytes)));
}

Result<std::optional<std::string>> read_trusted_file_if_exists(const std::string& path,
                                                               size_t max_bytes) {
  auto text = TRY(read_trusted_file_if_exists(cwd(), path, max_bytes));
  if (!text || !path.starts_with('/')) return text;
  if (TRY(check_parents(path))) {
    Fd file = TRY(open_at(cwd(), path, O_PATH | O_NOFOLLOW));
    struct stat info = TRY(stat_fd(file, path));
    if (!is_known(info)) return somebody_elses(info, path);
  }
  return text;
}

Result<void> check_trusted(const Fd& file, const std::string& path) {
  struct stat info = TRY(stat_fd(file, path));
  return check_owner(info, "read " + quote(path), path);
}

Result<std::optional<Fd>> open_trusted_directory_if_exists(const std::string& path) {
  auto directory = TRY(open_if_exists(cwd(), path, O_RDONLY | O_DIRECTORY));
  if (!directory) return std::optional<Fd>();
  if (!TRY(check_parents(path + "/"))) return directory;
  struct stat info = TRY(stat_fd(*directory, path));
  TRY(check_owner(info, "use directory " + quote(path), path));
  return somebody_elses(info, path);
}

}  // namespace berth::sys
