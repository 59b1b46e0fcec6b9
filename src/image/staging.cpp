// SPDX-License-Identifier: Apache-2.0
#include "image/staging.hpp"

#include <fcntl.h>

#include <cerrno>
#include <ctime>

#include "base/text.hpp"
#include "image/layout.hpp"
#include "image/lease.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::image {
namespace {

constexpr int kMaxTries = 100;
constexpr size_t kMaxPins = size_t{16} << 20;

Result<sys::Fd> stage(const std::string& path, Shape shape, Locks locks) {
  sys::Fd fd;
  if (shape == Shape::directory) {
    TRY(sys::make_directory(sys::cwd(), path, 0700));
    fd = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  } else {
    fd = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  }
  TRY(lock_file(fd, sys::LockMode::exclusive, path, locks));
  return fd;
}

/// The name of an entry's lease: the entry itself, or taken from the name "stage-<lease>-<random>".
std::string lease_of(const std::string& name) {
  if (name.starts_with(kPinsPrefix) || name.starts_with(kHolderPrefix)) return name;
  if (!name.starts_with(kStagePrefix)) return "";
  std::string rest = name.substr(kStagePrefix.size());
  return std::string(kPinsPrefix) + rest.substr(0, rest.find('-'));
}

/// Whether the mark has no owner any more: its lease is gone.
bool is_empty_mark(const sys::Fd& root, const std::string& name) {
  auto owner = sys::read_link(root, "tmp/" + name);
  if (!owner.ok() || owner->find('/') != std::string::npos) return false;
  auto lease = sys::stat_entry(root, "tmp/" + *owner);
  return lease.ok() && !*lease;
}

/// Whether the empty file may belong to a process of another machine that is about to write its
/// lease into it. Locks of that machine may be invisible here.
bool may_be_in_the_making(const sys::Fd& root, const sys::Fd& file) {
  constexpr int64_t kSoon = 3600;  // seconds; clocks may differ
  if (!uses_leases(root)) return false;
  auto status = sys::stat_fd(file, "lease");
  return !status.ok() || ::time(nullptr) - status->st_mtim.tv_sec < kSoon;
}

}  // namespace

Result<void> lock_file(const sys::Fd& fd, sys::LockMode mode, const std::string& path,
                       Locks locks) {
  auto locked = sys::wait_lock(fd, mode, path);
  if (locked.ok() || !lacks_locks(locked.error())) return locked;
  if (locks == Locks::if_there_are) return {};
  return std::move(locked).error().with_hint(
      "BERTH_STORE_LEASES=1, or --root on a file system with locks");
}

Result<StagedEntry> stage_in(const std::string& root, std::string_view prefix, Shape shape,
                             Locks locks) {
  // If a sweeper removes the new entry before it is locked, tries again.
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    std::string path = root + "/tmp/" + std::string(prefix) + sys::random_hex(8);
    auto fd = stage(path, shape, locks);
    if (!fd.ok()) {
      if (fd.error().kind == Kind::not_found) continue;
      return std::move(fd).error();
    }
    if (TRY(still_there(*fd, path))) return StagedEntry{std::move(*fd), std::move(path)};
  }
  return make_error(Kind::busy, "stage a file in " + quote(root + "/tmp"));
}

Result<bool> still_there(const sys::Fd& fd, const std::string& path) {
  struct stat open = TRY(sys::stat_fd(fd, path));
  auto named = TRY(sys::stat_entry(sys::cwd(), path));
  return named && named->st_ino == open.st_ino && named->st_dev == open.st_dev;
}

std::optional<sys::Fd> take_leftover(const sys::Fd& root, const std::string& name) {
  const std::string path = "tmp/" + name;
  if (name.starts_with(kMarkPrefix)) {
    // Except the mark of the whole store: a waiting process takes it from a dead owner.
    bool left = name != kStoreMark && is_empty_mark(root, name);
    return left ? std::optional<sys::Fd>(sys::Fd()) : std::nullopt;
  }
  auto fd = sys::open_if_exists(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  // A symbolic link: a mark that take_away() is removing.
  if (!fd.ok() && fd.error().sys_errno == ELOOP) return sys::Fd();
  if (!fd.ok() || !*fd) return std::nullopt;
  auto locked = sys::try_lock(**fd, sys::LockMode::exclusive, path);
  if (locked.ok() && !*locked) return std::nullopt;
  const std::string lease = lease_of(name);
  if (lease.empty()) {
    bool left = locked.ok() || name.starts_with(kTrashPrefix) || name.starts_with(kClaimPrefix);
    return left ? std::move(*fd) : std::nullopt;
  }
  auto text = sys::read_file_if_exists(root, "tmp/" + lease, kMaxPins);
  if (text.ok() && !*text) return std::move(*fd);
  if (text.ok() && (*text)->empty() && may_be_in_the_making(root, **fd)) return std::nullopt;
  // If the owner is on another machine, or there are no locks, only waiting shows whether it is
  // alive.
  if (!locked.ok() || !text.ok() || is_of_other_machine(**text)) return std::nullopt;
  return std::move(*fd);
}

void sweep(const sys::Fd& root) {
  // A sweep never fails: an error here will occur again, and be reported, where it matters.
  auto names = sys::list_directory(root, "tmp");
  if (!names.ok()) return;
  for (const auto& name : *names) {
    auto held = take_leftover(root, name);
    if (held) ignore(sys::remove_tree(root, "tmp/" + name));
  }
}

}  // namespace berth::image
