// SPDX-License-Identifier: Apache-2.0
#include "sys/file/open_devices.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

constexpr size_t kMostFiles = size_t{1} << 20;

using Found = std::optional<dev_t>;

Result<std::optional<QuietStat>> look(const Fd& dir, const std::string& name, int flags) {
  struct statx info {};
  int status = ::statx(dir.get(), name.c_str(), flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
                       STATX_TYPE | STATX_MNT_ID, &info);
  if (status != 0 && (errno == ENOENT || errno == ESRCH)) return std::optional<QuietStat>();
  if (status != 0) return errno_now().error("look at " + quote(name));
  QuietStat seen;
  seen.mode = info.stx_mode;
  seen.device = makedev(info.stx_dev_major, info.stx_dev_minor);
  seen.rdev = makedev(info.stx_rdev_major, info.stx_rdev_minor);
  seen.mount = info.stx_mnt_id;
  return std::optional<QuietStat>(seen);
}

Result<std::vector<std::string>> names_in(const std::string& path, std::optional<Fd>& directory) {
  directory = TRY(open_if_exists(cwd(), path, O_RDONLY | O_DIRECTORY));
  if (!directory) return std::vector<std::string>();
  auto names = list_directory(*directory, ".", kMostFiles);
  bool ended =
      !names.ok() && (names.error().kind == Kind::not_found || names.error().sys_errno == ESRCH);
  if (ended) return std::vector<std::string>();
  return names;
}

/// Sets `any` if there is something to examine.
Result<Found> find_in(const std::string& path, const std::vector<dev_t>& devices, bool& any) {
  std::optional<Fd> directory;
  std::vector<std::string> names = TRY(names_in(path, directory));
  any = any || !names.empty();
  for (const std::string& name : names) {
    auto seen = TRY(look(*directory, name, 0));
    bool has =
        seen && S_ISCHR(seen->mode) && std::ranges::find(devices, seen->rdev) != devices.end();
    if (has) return Found(seen->rdev);
  }
  return Found();
}

}  // namespace

Result<std::optional<QuietStat>> stat_quietly(const Fd& dir, const std::string& name) {
  return look(dir, name, name.empty() ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW);
}

// Examines each thread, because each may have its own file table. The threads share the memory, but
// an ended thread shows no mappings, and the first one may have ended before the others.
Result<Found> find_open_device(pid_t pid, const std::vector<dev_t>& devices) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::optional<Fd> directory;
  std::vector<std::string> threads = TRY(names_in(tasks, directory));
  bool any_mapped = false;
  for (const std::string& thread : threads) {
    bool any_open = false;
    auto found = TRY(find_in(tasks + "/" + thread + "/fd", devices, any_open));
    if (!found && !any_mapped) {
      found = TRY(find_in("/proc/" + thread + "/map_files", devices, any_mapped));
    }
    if (found) return found;
  }
  return Found();
}

}  // namespace berth::sys
