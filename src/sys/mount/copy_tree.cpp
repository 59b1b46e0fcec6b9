// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/copy_tree.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/regular.hpp"
#include "sys/file/tree.hpp"
#include "sys/mount/mount.hpp"

namespace berth::sys {
namespace {

constexpr int kMaxDepth = 128;
constexpr size_t kMaxAttributes = 65536;  // XATTR_LIST_MAX and XATTR_SIZE_MAX of the kernel
constexpr size_t kChunk = size_t{1} << 30;

FileTime file_time(const timespec& time) {
  return {time.tv_sec, static_cast<uint32_t>(time.tv_nsec)};
}

// Attributes that cannot be set are skipped: a tmpfs may not support user attributes, and a user
// may not set trusted ones.
void copy_attributes(const Fd& from, const Fd& to) {
  if (::flistxattr(from.get(), nullptr, 0) <= 0) return;
  std::vector<char> names(kMaxAttributes);
  ssize_t size = ::flistxattr(from.get(), names.data(), names.size());
  std::vector<char> value;
  for (ssize_t at = 0; at < size;) {
    const char* name = names.data() + at;
    at += static_cast<ssize_t>(std::string_view(name).size()) + 1;
    value.resize(kMaxAttributes);
    // Attributes about the layout in the file system are not copied: they are no property of the
    // file.
    std::string_view key(name);
    if (key.starts_with("trusted.overlay.") || key.starts_with("user.overlay.") ||
        key.starts_with("user.fuseoverlayfs.")) {
      continue;
    }
    ssize_t length = ::fgetxattr(from.get(), name, value.data(), value.size());
    if (length < 0) continue;
    ignore(write_attribute(to, name, {value.data(), static_cast<size_t>(length)}));
  }
}

// The mode is set after the owner, because a change of owner clears the set-id bits. The times are
// set last.
Result<void> copy_metadata(const Fd& from, const Fd& to, const struct stat& info,
                           const std::string& name) {
  ignore(change_owner(to, info.st_uid, info.st_gid, name));
  copy_attributes(from, to);
  TRY(change_mode(to, info.st_mode & 07777, name));
  ignore(set_times(to, file_time(info.st_atim), file_time(info.st_mtim), name));
  return {};
}

/// Holes stay holes: an image may claim larger ones than any disk.
Result<void> copy_data(const Fd& from, const Fd& to, off_t size, const std::string& name) {
  auto failed = [&name] { return errno_now().error("copy " + quote(name)); };
  if (::ftruncate(to.get(), size) != 0) return failed();
  off_t at = 0;
  while (at < size) {
    off_t begin = ::lseek(from.get(), at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return {};  // no more data
    bool knows_holes = begin >= 0;
    if (!knows_holes) begin = at;
    off_t end = knows_holes ? ::lseek(from.get(), begin, SEEK_HOLE) : size;
    if (end < 0 || ::lseek(to.get(), begin, SEEK_SET) < 0) return failed();
    for (at = begin; at < end;) {
      size_t piece = std::min<off_t>(end - at, kChunk);
      ssize_t count = ::sendfile(to.get(), from.get(), &at, piece);
      if (count == 0) return {};  // the file became shorter
      if (count < 0 && errno != EINTR) return failed();
    }
  }
  return {};
}

Result<void> copy_file(const Fd& from_dir, const Fd& to_dir, const std::string& entry,
                       const std::string& name) {
  // Opened as O_PATH first: the entry may be another file by now, and opening a device may have
  // effects.
  Fd found = TRY(open_at(from_dir, entry, O_PATH | O_NOFOLLOW));
  struct stat info = TRY(stat_fd(found, name));
  auto readable = TRY(open_regular(found, name));
  if (!readable) return make_error(Kind::busy, "copy " + quote(name) + ": changes");
  const Fd& from = *readable;
  Fd to = TRY(open_at(to_dir, entry, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  // Both share their blocks if the file system can.
  bool shared = ::ioctl(to.get(), FICLONE, from.get()) == 0;
  if (!shared) TRY(copy_data(from, to, info.st_size, name));
  return copy_metadata(from, to, info, name);
}

Result<void> copy_special(const Fd& to_dir, const std::string& entry, const struct stat& info,
                          const std::string& name) {
  // Made with mode 0, so that no other user can open the file before its owner and mode are set.
  if (::mknodat(to_dir.get(), entry.c_str(), info.st_mode & S_IFMT, info.st_rdev) != 0) {
    if (errno == EPERM) return {};
    return errno_now().error("copy " + quote(name));
  }
  Fd made = TRY(hold_made(to_dir, entry, info.st_mode & S_IFMT, info.st_rdev));
  ignore(change_owner(made, info.st_uid, info.st_gid, name));
  return change_mode(made, info.st_mode & 07777, name);
}

Result<void> copy_link(const Fd& from_dir, const Fd& to_dir, const std::string& entry,
                       const struct stat& info) {
  std::string text = TRY(read_link(from_dir, entry));
  TRY(make_symlink(text, to_dir, entry));
  Fd made = TRY(hold_made(to_dir, entry, S_IFLNK));
  ignore(change_owner(made, info.st_uid, info.st_gid, entry));
  ignore(set_times(made, file_time(info.st_atim), file_time(info.st_mtim), entry));
  return {};
}

Result<void> copy_found(const Fd& from_dir, const Fd& to_dir, const std::string& entry,
                        const struct stat& found, const std::string& name) {
  if (S_ISREG(found.st_mode)) return copy_file(from_dir, to_dir, entry, name);
  if (S_ISLNK(found.st_mode)) return copy_link(from_dir, to_dir, entry, found);
  return copy_special(to_dir, entry, found, name);
}

class Copier {
 public:
  explicit Copier(uint64_t mount) : mount_(mount) {}
  Result<void> directory(const Fd& from, const Fd& to, const std::string& name, int depth);

 private:
  Result<void> below(const Fd& from_dir, const Fd& to_dir, const std::string& entry,
                     const std::string& name, int depth);
  uint64_t mount_;
};

Result<void> Copier::below(const Fd& from_dir, const Fd& to_dir, const std::string& entry,
                           const std::string& name, int depth) {
  Fd from = TRY(open_at(from_dir, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (TRY(mount_id(from, name)) != mount_) return {};
  if (::mkdirat(to_dir.get(), entry.c_str(), 0700) != 0) {
    return errno_now().error("create directory " + quote(name));
  }
  Fd to = TRY(open_at(to_dir, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(directory(from, to, name, depth + 1));
  struct stat info = TRY(stat_fd(from, name));
  return copy_metadata(from, to, info, name);
}

Result<void> Copier::directory(const Fd& from, const Fd& to, const std::string& name, int depth) {
  if (depth > kMaxDepth) return make_error(Kind::usage, "copy " + quote(name) + ": too deep");
  std::vector<std::string> entries = TRY(list_directory(from, "."));
  for (const auto& entry : entries) {
    auto found = TRY(stat_entry(from, entry));
    if (!found) continue;
    std::string path = name + "/" + entry;
    if (S_ISDIR(found->st_mode)) {
      TRY(below(from, to, entry, path, depth));
    } else {
      TRY(copy_found(from, to, entry, *found, path));
    }
  }
  return {};
}

}  // namespace

Result<void> copy_tree(const Fd& from, const Fd& to, const std::string& name) {
  Fd source = TRY(open_at(from, ".", O_RDONLY | O_DIRECTORY));
  Fd target = TRY(open_at(to, ".", O_RDONLY | O_DIRECTORY));
  uint64_t mount = TRY(mount_id(source, name));
  return Copier(mount).directory(source, target, name, 1);
}

Result<void> copy_entry(const Fd& from, const Fd& to, const std::string& entry) {
  auto found = TRY(stat_entry(from, entry));
  if (!found) return {};
  return copy_found(from, to, entry, *found, entry);
}

Result<void> copy_directory_metadata(const Fd& from, const Fd& to, const std::string& name) {
  struct stat info = TRY(stat_fd(from, name));
  return copy_metadata(from, to, info, name);
}

}  // namespace berth::sys
