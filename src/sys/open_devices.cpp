// SPDX-License-Identifier: Apache-2.0
#include "sys/open_devices.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "sys/file.hpp"

namespace berth::sys {
namespace {

constexpr size_t kMostFiles = size_t{1} << 20;

/// Of the file behind a link of /proc; nothing where that has gone, or is no character device.
std::optional<dev_t> device_behind(const Fd& directory, const std::string& name) {
  struct statx info {};
  int status = ::statx(directory.get(), name.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info);
  if (status != 0 || !S_ISCHR(info.stx_mode)) return std::nullopt;
  return makedev(info.stx_rdev_major, info.stx_rdev_minor);
}

Result<std::optional<dev_t>> find_in(pid_t pid, const char* kind,
                                     const std::vector<dev_t>& devices) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + kind;
  auto directory = TRY(open_if_exists(cwd(), path, O_RDONLY | O_DIRECTORY));
  if (!directory) return std::optional<dev_t>();
  auto names = list_directory(*directory, ".", kMostFiles);
  bool ended = !names.ok() && names.error().kind == Kind::not_found;
  if (ended) return std::optional<dev_t>();
  for (const std::string& name : TRY(std::move(names))) {
    auto device = device_behind(*directory, name);
    if (device && std::find(devices.begin(), devices.end(), *device) != devices.end()) {
      return device;
    }
  }
  return std::optional<dev_t>();
}

}  // namespace

Result<std::optional<dev_t>> find_open_device(pid_t pid, const std::vector<dev_t>& devices) {
  auto open = TRY(find_in(pid, "fd", devices));
  if (open) return open;
  return find_in(pid, "map_files", devices);
}

}  // namespace berth::sys
