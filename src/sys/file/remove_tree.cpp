// SPDX-License-Identifier: Apache-2.0
#include "sys/file/remove_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"

namespace berth::sys {
namespace {

/// A tree to be removed. It may be of any depth, because a container may have made it. Subtrees
/// deeper than kMostDepth are moved up to the top first, so that neither our stack nor our
/// descriptors limit the depth.
class Removal {
 public:
  Result<void> remove(const Fd& dir, const std::string& name, const std::string& shown, int depth);

 private:
  static constexpr int kMostDepth = 100;

  Result<void> remove_children(const Fd& dir, const std::string& shown, int depth);
  Result<void> move_up(const Fd& dir, const std::string& name, const Fd& opened,
                       const std::string& shown);

  const Fd* top_ = nullptr;
  uint64_t moved_ = 0;
};

Result<void> Removal::remove(const Fd& dir, const std::string& name, const std::string& shown,
                             int depth) {
  if (::unlinkat(dir.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return errno_now().error("remove " + quote(shown));
  if (::unlinkat(dir.get(), name.c_str(), AT_REMOVEDIR) == 0) return {};
  if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES) {
    return errno_now().error("remove " + quote(shown));
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  auto child = open_at(dir, name, kFlags);
  if (!child.ok() && child.error().kind == Kind::denied) {
    Fd closed = TRY(hold_made(dir, name, S_IFDIR));
    TRY(change_mode(closed, 0700, shown));
    child = open_at(dir, name, kFlags);
  }
  if (!child.ok()) return std::move(child).error();
  if (depth > kMostDepth) return move_up(dir, name, *child, shown);
  if (depth == 0) top_ = &*child;
  uint64_t before;
  do {
    before = moved_;
    TRY(remove_children(*child, shown, depth + 1));
  } while (depth == 0 && moved_ != before);
  if (::unlinkat(dir.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return errno_now().error("remove " + quote(shown));
  }
  return {};
}

Result<void> Removal::remove_children(const Fd& dir, const std::string& shown, int depth) {
  struct stat entry {};
  if (::fstat(dir.get(), &entry) == 0 && (entry.st_mode & 0700) != 0700) {
    ::fchmod(dir.get(), (entry.st_mode & 07777) | 0700);
  }
  std::vector<std::string> names = TRY(list_directory(dir, "."));
  for (const auto& name : names) TRY(remove(dir, name, shown + "/" + name, depth));
  return {};
}

Result<void> Removal::move_up(const Fd& dir, const std::string& name, const Fd& opened,
                              const std::string& shown) {
  ::fchmod(opened.get(), 0700);  // a move changes its entry "..", which needs write permission
  while (true) {
    std::string above = ".moved-up-" + std::to_string(moved_++);
    if (::renameat2(dir.get(), name.c_str(), top_->get(), above.c_str(), RENAME_NOREPLACE) == 0) {
      return {};
    }
    if (errno != EEXIST) return errno_now().error("remove " + quote(shown));
  }
}

}  // namespace

Result<void> remove_tree(const Fd& dir, const std::string& path) {
  return Removal().remove(dir, path, path, 0);
}

TempDir::TempDir(TempDir&& other) noexcept
    : parent_(std::move(other.parent_)),
      fd_(std::move(other.fd_)),
      name_(std::exchange(other.name_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    std::swap(parent_, other.parent_);
    std::swap(fd_, other.fd_);
    std::swap(name_, other.name_);
  }
  return *this;
}

TempDir::~TempDir() {
  if (!name_.empty()) ignore(remove_tree(parent_, name_));  // best effort: a destructor cannot fail
}

Result<TempDir> TempDir::make(const Fd& dir, const std::string& prefix) {
  constexpr int kMaxTries = 100;
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    std::string name = prefix + random_hex(8);
    if (::mkdirat(dir.get(), name.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return errno_now().error("make directory " + quote(name));
    }
    TempDir made;
    made.name_ = name;
    made.parent_ = TRY(open_at(dir, ".", O_PATH | O_DIRECTORY));
    made.fd_ = TRY(open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    return made;
  }
  return make_error(Kind::exists, "make directory " + quote(prefix) + ": no free name");
}

}  // namespace berth::sys
