// SPDX-License-Identifier: Apache-2.0
// Files and directories by handle: the directory comes first, its path second.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// openat(2) with O_CLOEXEC. `flags` without O_CREAT needs no mode.
Result<Fd> open_at(const Fd& dir, const std::string& path, int flags, mode_t mode = 0);
/// Returns nothing if the file does not exist; every other failure is an error.
Result<std::optional<Fd>> open_if_exists(const Fd& dir, const std::string& path, int flags);

/// Reads a file of at most `max_bytes`. A longer file is an error (corrupt), so that an endless one
/// is no danger. Works for procfs and sysfs files, which do not report their size.
Result<std::string> read_file(const Fd& dir, const std::string& path,
                              size_t max_bytes = size_t{16} << 20);
Result<std::optional<std::string>> read_file_if_exists(const Fd& dir, const std::string& path,
                                                       size_t max_bytes = size_t{16} << 20);
/// Reads the rest of an open file; `name` is for errors.
Result<std::string> read_all(const Fd& fd, const std::string& name,
                             size_t max_bytes = size_t{16} << 20);

/// Writes everything or fails. write(2)
Result<void> write_all(const Fd& fd, std::string_view bytes, const std::string& name);

/// Creates or truncates the file. For files that have no readers yet.
Result<void> write_file(const Fd& dir, const std::string& path, std::string_view bytes,
                        mode_t mode = 0644);

enum class Sync { no, yes };
/// Writes a temporary file in the same directory, then renames it, so that a reader sees the old
/// file or the new one, never a part. With Sync::yes the new file also survives a power cut (fsync
/// of file and directory).
Result<void> replace_file(const Fd& dir, const std::string& path, std::string_view bytes,
                          mode_t mode = 0644, Sync sync = Sync::no);

/// mkdirat(2); an existing directory is fine. Parents must exist.
Result<void> make_directory(const Fd& dir, const std::string& path, mode_t mode = 0755);
/// mkdir -p below `dir`; for trusted paths only (follows symbolic links).
Result<void> make_directories(const Fd& dir, const std::string& path, mode_t mode = 0755);

/// Removes a file, link or empty directory; an absent one is fine. unlinkat(2)
Result<void> remove_entry(const Fd& dir, const std::string& path);
/// Removes an empty directory; an absent one is fine. unlinkat(2) AT_REMOVEDIR
Result<void> remove_directory(const Fd& dir, const std::string& path);
Result<void> rename(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                    const std::string& to);
/// Fails with Kind::exists instead of replacing a file. renameat2(2) RENAME_NOREPLACE
Result<void> rename_new(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                        const std::string& to);
Result<void> make_symlink(const std::string& target, const Fd& dir, const std::string& path);
Result<std::string> read_link(const Fd& dir, const std::string& path);

/// Names in a directory except "." and "..", sorted; at most `max_entries`.
Result<std::vector<std::string>> list_directory(const Fd& dir, const std::string& path,
                                                size_t max_entries = 1'000'000);

/// fstatat(2) without following a last link; nothing when absent.
Result<std::optional<struct stat>> stat_entry(const Fd& dir, const std::string& path);
Result<struct stat> stat_fd(const Fd& fd, const std::string& name);
/// The access mode of `fd`: O_RDONLY, O_WRONLY or O_RDWR. fcntl(2) F_GETFL
Result<int> access_mode(const Fd& fd, const std::string& name);

enum class LockMode { shared, exclusive };
/// flock(2) on an open file. `try_lock` returns false when another holds it; `wait_lock` waits. The
/// kernel releases the lock when the last descriptor of the open file is closed, so also when the
/// owner dies.
Result<bool> try_lock(const Fd& fd, LockMode mode, const std::string& name);
Result<void> wait_lock(const Fd& fd, LockMode mode, const std::string& name);
/// Releases the lock, even if another process has a copy of `fd`.
void unlock(const Fd& fd);

/// Seals the memory file `fd`: no process can change it any more. It must have been made with
/// MFD_ALLOW_SEALING. Errors: denied, usage (not a memory file). fcntl(2) F_ADD_SEALS
Result<void> seal(const Fd& fd, const std::string& what);

/// A memory file with the given bytes, positioned at its start. memfd_create(2)
Result<Fd> memory_file(const std::string& name, std::string_view bytes);

inline constexpr size_t kMostWords = 4096;
/// A memory file for the last output of a program (such as its standard error). It accepts only the
/// first kMostWords bytes, so that it cannot use more memory. `name` is only for /proc.
Result<Fd> words_file(const std::string& name);
/// The content of such a file, trimmed.
Result<std::string> read_words(const Fd& words);

/// `count` random bytes from the kernel as hex. getrandom(2)
std::string random_hex(size_t count);

/// Resolves `path` inside `root` as chroot would: "..", absolute links and links to links stay in.
/// `flags` as openat (usually O_PATH); magic links are refused.
/// Errors: not_found, denied; never unsupported (on Linux < 5.6, without openat2, it walks the
/// components). openat2(2) RESOLVE_IN_ROOT
Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags, mode_t mode = 0);

/// "/proc/self/fd/N": a path of an open file, for calls that only take paths.
std::string fd_path(const Fd& fd);
/// "/proc/PID/fd/N": the same for other processes of this user, while this process lives.
std::string shared_fd_path(const Fd& fd);

/// Exchanges the names of two files atomically. renameat2(2) RENAME_EXCHANGE
/// Errors: unsupported (the file system cannot), not_found.
Result<void> rename_exchange(const Fd& from_dir, const std::string& from, const Fd& to_dir,
                             const std::string& to);

/// mknodat(2); `mode` with S_IFCHR, S_IFBLK or S_IFIFO. Errors: exists, denied.
Result<void> make_node(const Fd& dir, const std::string& name, mode_t mode, unsigned major,
                       unsigned minor);
/// mkdirat(2). Errors: exists (anything with that name, even a dangling link).
Result<void> make_new_directory(const Fd& dir, const std::string& name, mode_t mode);

/// True when `fd` is the device `type` ("c", "b") `major`:`minor`.
Result<bool> is_device(const Fd& fd, const std::string& type, unsigned major, unsigned minor,
                       const std::string& name);

// Reads and writes at an offset, which do not move the file's position.

/// At most `size` bytes into `buffer`; 0 at the end of the file. pread(2)
Result<size_t> read_at(const Fd& fd, uint64_t offset, char* buffer, size_t size,
                       const std::string& name);

/// Up to `length` bytes from `offset`; fewer only at the end of the file.
Result<std::string> read_at(const Fd& fd, uint64_t offset, size_t length, const std::string& name);

/// Writes everything or fails. pwrite(2)
Result<void> write_at(const Fd& fd, uint64_t offset, std::string_view bytes,
                      const std::string& name);

/// Makes the file at least `size` bytes long, with blocks for all of them, and keeps its content;
/// does nothing where the file system cannot reserve blocks.
/// Errors: io (no room, a limit). fallocate(2)
Result<void> reserve(const Fd& fd, uint64_t size, const std::string& name);

/// ftruncate(2)
Result<void> truncate(const Fd& fd, uint64_t size, const std::string& name);

}  // namespace berth::sys
