// SPDX-License-Identifier: Apache-2.0
#include "engine/image/tree_size.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <utility>

#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr int kMaxTreeDepth = 2000;  // a path may exceed PATH_MAX, but the stack has a limit

struct SizeWalk {
  std::set<std::pair<dev_t, ino_t>> seen;  ///< files with hard links
  uint64_t bytes = 0;

  void directory(const sys::Fd& parent, const std::string& name, int depth) {
    // A container may replace a directory by a link at any time, so links are never followed.
    auto opened = sys::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!opened.ok() || depth > kMaxTreeDepth) return;
    auto names = sys::list_directory(*opened, ".");
    if (!names.ok()) return;
    for (const std::string& entry : *names) {
      auto status = sys::stat_entry(*opened, entry);
      if (!status.ok() || !*status) continue;
      const struct stat& found = **status;
      if (S_ISDIR(found.st_mode)) directory(*opened, entry, depth + 1);
      if (!S_ISREG(found.st_mode)) continue;
      if (found.st_nlink > 1 && !seen.emplace(found.st_dev, found.st_ino).second) continue;
      bytes += static_cast<uint64_t>(found.st_size);
    }
  }
};

}  // namespace

uint64_t tree_size(const std::string& path) {
  SizeWalk walk;
  walk.directory(sys::cwd(), path, 0);
  return walk.bytes;
}

}  // namespace berth::engine
