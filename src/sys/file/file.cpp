// SPDX-License-Identifier: Apache-2.0
#include "sys/file/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <memory>

#include "base/text.hpp"

namespace berth::sys {
namespace {

template <class Call>
auto retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

Result<Fd> open_at(const Fd& dir, const std::string& path, int flags, mode_t mode) {
  int fd = retry([&] { return ::openat(dir.get(), path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return errno_now().error(((flags & O_CREAT) ? "create " : "open ") + quote(path));
  return Fd(fd);
}

Result<std::optional<Fd>> open_if_exists(const Fd& dir, const std::string& path, int flags) {
  int fd = retry([&] { return ::openat(dir.get(), path.c_str(), flags | O_CLOEXEC); });
  if (fd >= 0) return std::optional<Fd>(Fd(fd));
  int saved = errno;
  if (saved == ENOENT) return std::optional<Fd>();
  return sys_error(saved, "open " + quote(path));
}

Result<std::string> read_all(const Fd& fd, const std::string& name, size_t max_bytes) {
  std::string text;
  std::array<char, 16384> buffer;
  while (true) {
    ssize_t count = retry([&] { return ::read(fd.get(), buffer.data(), buffer.size()); });
    if (count < 0) return errno_now().error("read " + quote(name));
    if (count == 0) return text;
    if (text.size() + static_cast<size_t>(count) > max_bytes) {
      return make_error(Kind::corrupt, "read " + quote(name) + ": larger than " +
                                           std::to_string(max_bytes) + " bytes");
    }
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

Result<std::string> read_file(const Fd& dir, const std::string& path, size_t max_bytes) {
  Fd fd = TRY(open_at(dir, path, O_RDONLY | O_NOCTTY));
  return read_all(fd, path, max_bytes);
}

Result<std::optional<std::string>> read_file_if_exists(const Fd& dir, const std::string& path,
                                                       size_t max_bytes) {
  std::optional<Fd> fd = TRY(open_if_exists(dir, path, O_RDONLY | O_NOCTTY));
  if (!fd) return std::optional<std::string>();
  return std::optional<std::string>(TRY(read_all(*fd, path, max_bytes)));
}

Result<void> write_all(const Fd& fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    ssize_t count = retry([&] { return ::write(fd.get(), bytes.data(), bytes.size()); });
    if (count < 0) return errno_now().error("write " + quote(name));
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> write_file(const Fd& dir, const std::string& path, std::string_view bytes,
                        mode_t mode) {
  Fd fd = TRY(open_at(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
  TRY(write_all(fd, bytes, path));
  return close_checked(std::move(fd), path);
}

Result<void> replace_file(const Fd& dir, const std::string& path, std::string_view bytes,
                          mode_t mode, Sync sync) {
  std::string temporary = path + ".tmp-" + random_hex(6);
  auto publish = [&]() -> Result<void> {
    auto opened = open_at(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    // The error does not name the temporary file, which the caller did not choose.
    if (!opened.ok()) return sys_error(opened.error().sys_errno, "create " + quote(path));
    Fd fd = *std::move(opened);
    TRY(write_all(fd, bytes, path));
    if (sync == Sync::yes && ::fsync(fd.get()) != 0) {
      return errno_now().error("write " + quote(path));
    }
    TRY(close_checked(std::move(fd), path));
    return rename(dir, temporary, dir, path);
  };
  auto published = publish();
  if (!published.ok()) {
    ignore(remove_entry(dir, temporary));  // the first error is reported
    return published;
  }
  if (sync == Sync::yes) {
    size_t slash = path.rfind('/');
    Fd parent = TRY(open_at(dir, slash == std::string::npos ? "." : path.substr(0, slash + 1),
                            O_RDONLY | O_DIRECTORY));
    if (::fsync(parent.get()) != 0) return errno_now().error("write " + quote(path));
  }
  return {};
}

Result<void> make_directory(const Fd& dir, const std::string& path, mode_t mode) {
  if (::mkdirat(dir.get(), path.c_str(), mode) == 0) return {};
  int saved = errno;
  if (saved == EEXIST) {
    struct stat entry {};
    if (::fstatat(dir.get(), path.c_str(), &entry, 0) == 0 && S_ISDIR(entry.st_mode)) return {};
  }
  return sys_error(saved, "make directory " + quote(path));
}

Result<void> make_directories(const Fd& dir, const std::string& path, mode_t mode) {
  auto made = make_directory(dir, path, mode);
  if (made.ok() || made.error().sys_errno != ENOENT) return made;
  std::string_view parent(path);
  while (parent.ends_with('/')) parent.remove_suffix(1);
  size_t slash = parent.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return made;
  TRY(make_directories(dir, std::string(parent.substr(0, slash)), mode));
  return make_directory(dir, path, mode);
}

Result<void> remove_directory(const Fd& dir, const std::string& path) {
  if (::unlinkat(dir.get(), path.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return errno_now().error("remove " + quote(path));
}

Result<void> remove_entry(const Fd& dir, const std::string& path) {
  if (::unlinkat(dir.get(), path.c_str(), 0) == 0 || errno == ENOENT) return {};
  int saved = errno;
  if (saved == EISDIR || saved == EPERM) {
    if (::unlinkat(dir.get(), path.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    saved = errno;
  }
  return sys_error(saved, "remove " + quote(path));
}

Result<void> rename(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                    const std::string& to) {
  if (::renameat(from_dir.get(), from.c_str(), to_dir.get(), to.c_str()) != 0) {
    return errno_now().error("rename " + quote(from) + " to " + quote(to));
  }
  return {};
}

Result<void> rename_new(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                        const std::string& to) {
  if (::renameat2(from_dir.get(), from.c_str(), to_dir.get(), to.c_str(), RENAME_NOREPLACE) != 0) {
    int saved = errno == ENOTEMPTY ? EEXIST : errno;
    return sys_error(saved, "rename " + quote(from) + " to " + quote(to));
  }
  return {};
}

Result<void> make_symlink(const std::string& target, const Fd& dir, const std::string& path) {
  if (::symlinkat(target.c_str(), dir.get(), path.c_str()) != 0) {
    return errno_now().error("link " + quote(path));
  }
  return {};
}

Result<std::string> read_link(const Fd& dir, const std::string& path) {
  std::string target(4096, '\0');
  ssize_t length = ::readlinkat(dir.get(), path.c_str(), target.data(), target.size());
  if (length < 0) return errno_now().error("read link " + quote(path));
  target.resize(static_cast<size_t>(length));
  return target;
}

Result<std::vector<std::string>> list_directory(const Fd& dir, const std::string& path,
                                                size_t max_entries) {
  Fd fd = TRY(open_at(dir, path, O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return errno_now().error("list " + quote(path));
  fd.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() >= max_entries) {
      return make_error(Kind::corrupt, "list " + quote(path) + ": more than " +
                                           std::to_string(max_entries) + " entries");
    }
    names.emplace_back(name);
  }
  if (errno != 0) return errno_now().error("list " + quote(path));
  std::ranges::sort(names);
  return names;
}

Result<std::optional<struct stat>> stat_entry(const Fd& dir, const std::string& path) {
  struct stat entry {};
  if (::fstatat(dir.get(), path.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0) {
    return std::optional<struct stat>(entry);
  }
  int saved = errno;
  if (saved == ENOENT || saved == ENOTDIR) return std::optional<struct stat>();
  return sys_error(saved, "look up " + quote(path));
}

Result<struct stat> stat_fd(const Fd& fd, const std::string& name) {
  struct stat entry {};
  if (::fstat(fd.get(), &entry) != 0) return errno_now().error("look up " + quote(name));
  return entry;
}

Result<int> access_mode(const Fd& fd, const std::string& name) {
  int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0) return errno_now().error("look up " + quote(name));
  return flags & O_ACCMODE;
}

Result<bool> try_lock(const Fd& fd, LockMode mode, const std::string& name) {
  int operation = (mode == LockMode::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  if (retry([&] { return ::flock(fd.get(), operation); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return errno_now().error("lock " + quote(name));
}

Result<void> wait_lock(const Fd& fd, LockMode mode, const std::string& name) {
  if (retry([&] { return ::flock(fd.get(), mode == LockMode::shared ? LOCK_SH : LOCK_EX); }) != 0) {
    return errno_now().error("lock " + quote(name));
  }
  return {};
}

void unlock(const Fd& fd) {
  ::flock(fd.get(), LOCK_UN);  // cannot fail for an open file
}

Result<void> seal(const Fd& fd, const std::string& what) {
  constexpr int kAll = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fcntl(fd.get(), F_ADD_SEALS, kAll) == 0) return {};
  return errno_now().error("seal " + what);
}

Result<Fd> memory_file(const std::string& name, std::string_view bytes) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!fd) return errno_now().error("make memory file " + quote(name));
  TRY(write_all(fd, bytes, name));
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return errno_now().error("rewind " + quote(name));
  return fd;
}

Result<Fd> words_file(const std::string& name) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return errno_now().error("make memory file " + quote(name));
  TRY(truncate(fd, kMostWords, name));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0) return fd;
  return errno_now().error("seal memory file " + quote(name));
}

Result<std::string> read_words(const Fd& words) {
  std::string text = TRY(read_at(words, 0, kMostWords, "words"));
  return std::string(trim(text.substr(0, text.find('\0'))));
}

std::string random_hex(size_t count) {
  std::string bytes(count, '\0');
  ssize_t got = retry([&] { return ::getrandom(bytes.data(), bytes.size(), 0); });
  BERTH_ASSERT(got == static_cast<ssize_t>(count));  // getrandom(2) gives up to 256 bytes at once
  return to_hex(bytes);
}

std::string fd_path(const Fd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

std::string shared_fd_path(const Fd& fd) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd.get());
}

Result<void> rename_exchange(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                             const std::string& to) {
  if (::renameat2(from_dir.get(), from.c_str(), to_dir.get(), to.c_str(), RENAME_EXCHANGE) != 0) {
    int saved = errno;
    Error error = sys_error(saved, "exchange " + quote(from) + " with " + quote(to));
    if (saved == EINVAL || saved == ENOSYS) error.kind = Kind::unsupported;
    return error;
  }
  return {};
}

Result<void> make_node(const Fd& dir, const std::string& name, mode_t mode, unsigned major_number,
                       unsigned minor_number) {
  if (::mknodat(dir.get(), name.c_str(), mode, makedev(major_number, minor_number)) != 0) {
    return errno_now().error("make device " + quote(name));
  }
  return {};
}

Result<void> make_new_directory(const Fd& dir, const std::string& name, mode_t mode) {
  if (::mkdirat(dir.get(), name.c_str(), mode) != 0) {
    return errno_now().error("create directory " + quote(name));
  }
  return {};
}

Result<bool> is_device(const Fd& fd, const std::string& type, unsigned major_number,
                       unsigned minor_number, const std::string& name) {
  struct stat info = TRY(stat_fd(fd, name));
  mode_t wanted = type == "b" ? S_IFBLK : type == "p" ? S_IFIFO : S_IFCHR;
  if ((info.st_mode & S_IFMT) != wanted) return false;
  return wanted == S_IFIFO || info.st_rdev == makedev(major_number, minor_number);
}

Result<size_t> read_at(const Fd& fd, uint64_t offset, char* buffer, size_t size,
                       const std::string& name) {
  while (true) {
    ssize_t got = ::pread(fd.get(), buffer, size, static_cast<off_t>(offset));
    int saved_errno = errno;
    if (got >= 0) return static_cast<size_t>(got);
    if (saved_errno != EINTR) return sys_error(saved_errno, "read " + quote(name));
  }
}

Result<std::string> read_at(const Fd& fd, uint64_t offset, size_t length, const std::string& name) {
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) return std::string();
  std::string out(length, '\0');
  size_t filled = 0;
  while (filled < length) {
    size_t got = TRY(read_at(fd, offset + filled, out.data() + filled, length - filled, name));
    if (got == 0) break;
    filled += got;
  }
  out.resize(filled);
  return out;
}

Result<void> write_at(const Fd& fd, uint64_t offset, std::string_view bytes,
                      const std::string& name) {
  while (!bytes.empty()) {
    ssize_t put = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    int saved_errno = errno;
    if (put < 0 && saved_errno == EINTR) continue;
    if (put < 0) return sys_error(saved_errno, "write " + quote(name));
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

Result<void> reserve(const Fd& fd, uint64_t size, const std::string& name) {
  // The limit also applies to overwriting, which fallocate does not check.
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) {
    return sys_error(EFBIG, "write " + quote(name));
  }
  while (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    int saved_errno = errno;
    if (saved_errno == ENOSPC || saved_errno == EDQUOT || saved_errno == EFBIG) {
      return sys_error(saved_errno, "write " + quote(name));
    }
    if (saved_errno != EINTR) break;
  }
  return {};
}

Result<void> truncate(const Fd& fd, uint64_t size, const std::string& name) {
  while (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    int saved_errno = errno;
    if (saved_errno != EINTR) return sys_error(saved_errno, "truncate " + quote(name));
  }
  return {};
}

}  // namespace berth::sys
