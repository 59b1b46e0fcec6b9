// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/own_root.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "sys/file/file.hpp"
#include "sys/file/io_at.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMostNames = 4096;

// Checked before it is opened, and again after: opening a device may have effects.
std::optional<sys::Fd> open_regular(const std::string& path) {
  auto place = sys::open_at(sys::cwd(), path, O_PATH | O_NOFOLLOW);
  if (!place.ok()) return {};
  auto info = sys::stat_fd(*place, path);
  if (!info.ok() || !S_ISREG(info->st_mode)) return {};
  auto file = sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (!file.ok()) return {};
  auto opened = sys::stat_fd(*file, path);
  if (!opened.ok() || !S_ISREG(opened->st_mode)) return {};
  return std::move(*file);
}

}  // namespace

Result<std::optional<scan::Tree::File>> OwnRoot::find_file(const std::string& path) const {
  auto file = open_regular(path);
  if (!file) return std::optional<File>();
  auto info = TRY(sys::stat_fd(*file, path));
  return std::optional<File>({path, static_cast<uint64_t>(info.st_size)});
}

Result<std::vector<std::string>> OwnRoot::list(const std::string& path) const {
  auto names = sys::list_directory(sys::cwd(), path, kMostNames);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

Result<std::string> OwnRoot::read(const File& file, uint64_t offset, size_t length) const {
  auto opened = open_regular(file.path);
  if (!opened) return std::string();
  return sys::read_at(*opened, offset, length, file.path);
}

}  // namespace berth::runtime
