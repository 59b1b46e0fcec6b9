// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/protected_program.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/mount.hpp"

namespace berth::sys {
namespace {

constexpr unsigned kMfdExec = 0x10;  // since Linux 6.3
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

/// Whether this process may write the file. The owner may, because the owner can make the file
/// writable.
bool may_write(const struct stat& status, const std::string& path) {
  return status.st_uid == ::geteuid() || ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

/// Whether the file cannot be written through `path`.
Result<bool> is_protected(const std::string& path) {
  struct statvfs mount {};
  if (::statvfs(path.c_str(), &mount) != 0) {
    return errno_now().error("look at the mount of " + quote(path));
  }
  if ((mount.f_flag & ST_RDONLY) != 0) return true;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno_now().error("look at " + quote(path));
  if (status.st_nlink == 0) return true;  // it is a private copy already
  return !may_write(status, path);
}

Result<Fd> read_only_view(const std::string& path) {
  Fd view = TRY(open_tree(cwd(), path, OPEN_TREE_CLONE));
  TRY(mount_setattr(view, MOUNT_ATTR_RDONLY, 0, 0, Recursive::no, path));
  return view;
}

Result<void> fill_copy(const Fd& copy, const Fd& from, const std::string& path) {
  struct stat status = TRY(stat_fd(from, path));
  for (off_t done = 0; done < status.st_size;) {
    ssize_t count =
        ::sendfile(copy.get(), from.get(), &done, static_cast<size_t>(status.st_size - done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_now().error("copy " + quote(path));
    if (count == 0) return sys_error(EIO, "copy " + quote(path));
  }
  return {};
}

// COMPAT(3.17): delete when that is our baseline. Copies into an unnamed file, which only this
// execution uses, so that writing to it harms no other process.
Result<Fd> nameless_copy(const Fd& from, const std::string& path) {
  Fd copy = TRY(open_at(cwd(), "/tmp", O_TMPFILE | O_WRONLY, 0500));
  TRY(fill_copy(copy, from, path));
  return open_at(cwd(), fd_path(copy), O_RDONLY);
}

Result<Fd> sealed_copy(const std::string& path) {
  auto failed = [&](int saved) { return sys_error(saved, "copy " + quote(path) + " to memory"); };
  Fd from = TRY(open_at(cwd(), path, O_RDONLY));
  int made = ::memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdExec);
  if (made < 0 && errno == EINVAL) {
    made = ::memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  }
  if (made < 0 && errno == ENOSYS) return nameless_copy(from, path);
  if (made < 0) return failed(errno);
  Fd copy(made);
  TRY(fill_copy(copy, from, path));
  // The kernel may hold pages for some time after the write, longer than F_ADD_SEALS waits.
  constexpr int kTries = 50;
  for (int attempt = 1; ::fcntl(copy.get(), F_ADD_SEALS, kSeals) != 0; ++attempt) {
    if (errno != EBUSY || attempt == kTries) return failed(errno);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return copy;
}

}  // namespace

Result<std::optional<Fd>> protect_program(const std::string& path) {
  if (TRY(is_protected(path))) return std::optional<Fd>();
  auto view = read_only_view(path);
  if (view.ok()) return std::optional<Fd>(std::move(*view));
  return std::optional<Fd>(TRY(sealed_copy(path)));
}

std::vector<std::string> environment_beside(const std::string& directory) {
  constexpr std::string_view kName = "BERTH_LIBEXEC_DIR=";
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(kName)) entries.emplace_back(*entry);
  }
  entries.push_back(std::string(kName) + directory);
  return entries;
}

}  // namespace berth::sys
