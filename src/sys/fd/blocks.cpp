// SPDX-License-Identifier: Apache-2.0
#include "sys/fd/blocks.hpp"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/text.hpp"

namespace berth::sys {
namespace {

constexpr uint64_t kMost = uint64_t{16} << 20;  // per call: btrfs does no more
constexpr uint32_t kExtents = 64;

struct SharedExtent {
  uint64_t logical = 0;
  uint64_t physical = 0;
  uint64_t length = 0;
  bool operator==(const SharedExtent&) const = default;
};

/// The first extents of the file; empty if unknown.
std::vector<SharedExtent> extents_of(const Fd& fd) {
  // The layout of struct fiemap: a head, then the extents.
  std::vector<uint64_t> memory(
      (sizeof(struct fiemap) + kExtents * sizeof(struct fiemap_extent)) / sizeof(uint64_t) + 1);
  auto* map = reinterpret_cast<struct fiemap*>(memory.data());
  map->fm_length = FIEMAP_MAX_OFFSET;
  map->fm_flags = FIEMAP_FLAG_SYNC;  // unwritten data has no blocks yet
  map->fm_extent_count = kExtents;
  std::vector<SharedExtent> extents;
  if (::ioctl(fd.get(), FS_IOC_FIEMAP, map) != 0) return extents;
  constexpr uint32_t kNowhere =
      FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DELALLOC;
  for (uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
    const struct fiemap_extent& extent = map->fm_extents[i];
    if ((extent.fe_flags & kNowhere) != 0) return {};
    extents.push_back({extent.fe_logical, extent.fe_physical, extent.fe_length});
  }
  return extents;
}

bool cannot(int error) {
  return error == EOPNOTSUPP || error == ENOTTY || error == EINVAL || error == EXDEV ||
         error == ENOSYS;
}

}  // namespace

Result<Shared> share_blocks(const Fd& from, const Fd& to, uint64_t size, const std::string& name) {
  // The kernel's layout: a head, then one part for each other file.
  std::array<uint64_t, (sizeof(struct file_dedupe_range) + sizeof(struct file_dedupe_range_info)) /
                           sizeof(uint64_t)>
      memory{};
  auto* range = reinterpret_cast<struct file_dedupe_range*>(memory.data());
  struct file_dedupe_range_info& info = range->info[0];
  for (uint64_t at = 0; at < size;) {
    memory = {};
    range->src_offset = at;
    range->src_length = std::min(kMost, size - at);
    range->dest_count = 1;
    info.dest_fd = to.get();
    info.dest_offset = at;
    int failed = ::ioctl(from.get(), FIDEDUPERANGE, range) != 0 ? errno : 0;
    if (failed == EINTR) continue;
    if (failed == 0 && info.status < 0) failed = -info.status;
    if (failed != 0) {
      Error error = sys_error(failed, "share the blocks of " + quote(name));
      if (cannot(failed)) error.kind = Kind::unsupported;
      return error;
    }
    if (info.status == FILE_DEDUPE_RANGE_DIFFERS) return Shared::differ;
    if (info.bytes_deduped == 0) {
      return make_error(Kind::unsupported, "share the blocks of " + quote(name));
    }
    at += info.bytes_deduped;
  }
  return Shared::yes;
}

bool have_same_blocks(const Fd& one, const Fd& other) {
  auto extents = extents_of(one);
  return !extents.empty() && extents == extents_of(other);
}

Result<std::vector<Stretch>> data_stretches(const Fd& fd, uint64_t size, const std::string& name) {
  std::vector<Stretch> stretches;
  off_t before = ::lseek(fd.get(), 0, SEEK_CUR);
  for (uint64_t at = 0; at < size;) {
    off_t data = ::lseek(fd.get(), static_cast<off_t>(at), SEEK_DATA);
    int saved = errno;
    if (data < 0 && saved == ENXIO) break;  // ENXIO: the rest is one hole
    if (data < 0 && saved == EINVAL) {
      stretches = {{0, size}};
      break;
    }
    if (data < 0) return sys_error(saved, "look for holes of " + quote(name));
    off_t hole = ::lseek(fd.get(), data, SEEK_HOLE);
    if (hole < 0) return errno_now().error("look for holes of " + quote(name));
    uint64_t end = std::min(static_cast<uint64_t>(hole), size);
    if (static_cast<uint64_t>(data) >= end) break;
    stretches.push_back({static_cast<uint64_t>(data), end - static_cast<uint64_t>(data)});
    at = end;
  }
  if (::lseek(fd.get(), before, SEEK_SET) < 0) {
    return errno_now().error("read " + quote(name));
  }
  return stretches;
}

}  // namespace berth::sys
