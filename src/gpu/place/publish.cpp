// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/publish.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "base/fnv.hpp"
#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::gpu {
namespace {

constexpr const char* kPrefix = "building-";

// The modes are set explicitly: every user in a container reads these directories, and our umask
// may be 077.
Result<void> make_open_directory(const sys::Fd& parent, const std::string& name) {
  TRY(sys::make_directory(parent, name, 0755));
  auto fd = TRY(sys::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return sys::change_mode(fd, 0755, name);
}

}  // namespace

std::string key_of_text(std::string_view text) {
  return fmt::format("{:016x}", fnv1a(text));
}

Result<void> publish_directory(const sys::Fd& parent, const std::string& name, const Fill& fill) {
  if (TRY(sys::stat_entry(parent, name))) return {};
  // Only one process builds at a time, so leftovers here are from a killed process. A lock belongs
  // to the open file description, so the directory is opened separately for the lock.
  sys::Fd lock = TRY(sys::open_at(parent, ".", O_RDONLY | O_DIRECTORY));
  TRY(sys::wait_lock(lock, sys::LockMode::exclusive, name));
  for (const std::string& left : TRY(sys::list_directory(parent, "."))) {
    if (left.starts_with(kPrefix)) TRY(sys::remove_tree(parent, left));
  }
  auto staged = TRY(sys::TempDir::make(parent, kPrefix));
  TRY(fill(staged.fd()));
  TRY(sys::change_mode(staged.fd(), 0755, name));
  auto renamed = sys::rename_new(parent, staged.name(), parent, name);
  if (renamed.ok()) {
    staged.release();
  } else if (renamed.error().kind != Kind::exists) {
    return renamed;
  }
  return {};
}

Result<void> make_parents(const sys::Fd& directory, const std::string& path,
                          std::set<std::string>& made) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string parent = path.substr(0, slash);
    if (made.insert(parent).second) TRY(make_open_directory(directory, parent));
  }
  return {};
}

Result<struct stat> stat_driver_file(const std::string& path) {
  auto info = TRY(sys::stat_entry(sys::cwd(), path));
  if (info) return *info;
  return make_error(Kind::not_found, fmt::format("driver file {} is gone", quote(path)),
                    "berth gpu list --refresh");
}

}  // namespace berth::gpu
