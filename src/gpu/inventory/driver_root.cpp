// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/driver_root.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"

namespace berth::gpu {
namespace {

// The files of procfs and sysfs that we read have a few kilobytes.
constexpr size_t kMaxKernelText = size_t{4} << 20;
// The largest library directories of distributions have about ten thousand names.
constexpr size_t kMaxNames = 200'000;

std::string relative(const std::string& path) {
  size_t start = path.find_first_not_of('/');
  return start == std::string::npos ? "." : path.substr(start);
}

}  // namespace

Result<DriverRoot> DriverRoot::open(const std::string& path) {
  if (!path.starts_with('/')) {
    return make_error(Kind::usage,
                      fmt::format("driver root {}: not an absolute path", quote(path)));
  }
  DriverRoot root;
  root.path_ = path;
  std::string context = fmt::format("cannot read the driver root {}", quote(path));
  root.root_ = TRY_CTX(sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY), context);
  while (root.path_.size() > 1 && root.path_.ends_with('/')) root.path_.pop_back();
  root.synthetic_ = TRY_CTX(sys::stat_entry(root.root_, "SYNTHETIC"), context).has_value();
  root.machine_ = root.synthetic_ ? TRY(sys::duplicate(root.root_))
                                  : TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  return root;
}

Result<std::optional<std::string>> DriverRoot::read_machine(const std::string& path) const {
  return sys::read_file_if_exists(machine_, relative(path), kMaxKernelText);
}

Result<std::vector<std::string>> DriverRoot::list_machine(const std::string& path) const {
  auto names = sys::list_directory(machine_, relative(path));
  if (!names.ok() && names.error().kind == Kind::not_found) return std::vector<std::string>();
  return names;
}

std::optional<struct stat> DriverRoot::stat_machine(const std::string& path) const {
  auto info = sys::stat_entry(machine_, relative(path));
  if (!info.ok()) return std::nullopt;  // we may not search a parent directory: treat it as absent
  return *info;
}

std::string DriverRoot::link_machine(const std::string& path) const {
  auto target = sys::read_link(machine_, relative(path));
  return target.ok() ? std::move(*target) : std::string();
}

std::string DriverRoot::machine_path(const std::string& path) const {
  return synthetic_ ? path_ + path : path;
}

std::optional<DriverRoot::Found> DriverRoot::find_below(const sys::Fd& root,
                                                        const std::string& path) {
  auto fd = sys::open_in_root(root, relative(path), O_PATH);
  if (!fd.ok()) return std::nullopt;
  auto info = sys::stat_fd(*fd, path);
  auto real = sys::read_link(sys::cwd(), sys::fd_path(*fd));
  if (!info.ok() || !real.ok()) return std::nullopt;
  return Found{.fd = std::move(*fd), .host_path = std::move(*real), .info = *info};
}

std::optional<DriverRoot::Found> DriverRoot::find(const std::string& path) const {
  return find_below(root_, path);
}

std::string DriverRoot::link(const std::string& path) const {
  auto fd = sys::open_in_root(root_, relative(path), O_PATH | O_NOFOLLOW);
  if (!fd.ok()) return {};
  auto target = sys::read_link(*fd, "");
  return target.ok() ? std::move(*target) : std::string();
}

std::optional<DriverRoot::Found> DriverRoot::find_on_machine(const std::string& path) const {
  return find_below(machine_, path);
}

std::optional<DriverRoot::Found> DriverRoot::open_file(const std::string& path) const {
  auto found = find(path);
  if (!found) return std::nullopt;
  auto readable = sys::open_regular(found->fd, path);
  if (!readable.ok() || !*readable) return std::nullopt;
  found->fd = std::move(**readable);
  return found;
}

Result<std::string> DriverRoot::read_file(const std::string& path, size_t max_bytes) const {
  auto found = open_file(path);
  if (!found) return std::string();
  return sys::read_all(found->fd, found->host_path, max_bytes);
}

Result<std::vector<std::string>> DriverRoot::list(const Found& directory) const {
  if (!S_ISDIR(directory.info.st_mode)) return std::vector<std::string>();
  return sys::list_directory(directory.fd, ".", kMaxNames);
}

std::string text_of(const DriverRoot& root, const std::string& path) {
  auto text = root.read_machine(path);
  return text.ok() && *text ? std::string(trim(**text)) : std::string();
}

std::vector<std::string> names_in(const DriverRoot& root, const std::string& path) {
  auto names = root.list_machine(path);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

}  // namespace berth::gpu
