// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: a container that may write to its cgroup chooses the names of the child cgroups.
#include "runtime/cgroup/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {

Result<void> write_cgroup_file(const sys::Fd& directory, const std::string& name,
                               const std::string& value) {
  sys::Fd file = TRY(sys::open_at(directory, name, O_WRONLY));
  if (::write(file.get(), value.data(), value.size()) < 0) {
    int saved = errno;
    return sys_error(saved, "write " + quote(value) + " to " + quote(name));
  }
  return {};
}

bool is_permission(int code) {
  return code == EACCES || code == EPERM || code == EROFS;
}

namespace {

Result<void> append_own_processes(const sys::Fd& directory, std::vector<pid_t>& pids) {
  auto text = sys::read_file_if_exists(directory, "cgroup.procs");
  // The processes of a threaded cgroup are only listed in its domain cgroup. cgroup-v2.rst
  if (!text.ok() && text.error().sys_errno == EOPNOTSUPP) text = std::string();
  // The cgroup may be removed while we read.
  if (!text.ok() && text.error().sys_errno == ENODEV) text = std::string();
  std::string lines = TRY(std::move(text)).value_or("");
  for (std::string_view line : split_blank(lines)) {
    if (auto pid = parse_i64(line)) pids.push_back(static_cast<pid_t>(*pid));
  }
  return {};
}

}  // namespace

std::vector<std::string> child_cgroups(const sys::Fd& directory) {
  std::vector<std::string> names;
  int fd = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return names;
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  while (stream != nullptr) {
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.push_back(std::move(name));
  }
  return names;
}

Result<void> visit_cgroups(const sys::Fd& directory,
                           const std::function<Result<void>(const sys::Fd&)>& visit) {
  std::vector<std::vector<std::string>> left;  // children to visit, per level, reversed
  auto enter = [&](const sys::Fd& here) -> Result<void> {
    TRY(visit(here));
    left.push_back(child_cgroups(here));
    std::ranges::reverse(left.back());
    return {};
  };
  sys::Fd here = TRY(sys::open_at(directory, ".", O_RDONLY | O_DIRECTORY));
  TRY(enter(here));
  while (true) {
    if (left.back().empty()) {
      left.pop_back();
      if (left.empty()) return {};
      here = TRY(sys::open_at(here, "..", O_RDONLY | O_DIRECTORY));
      continue;
    }
    auto child = TRY(sys::open_if_exists(here, left.back().back(), O_RDONLY | O_DIRECTORY));
    left.back().pop_back();
    if (!child) continue;
    here = std::move(*child);
    TRY(enter(here));
  }
}

Result<void> append_processes(const sys::Fd& directory, std::vector<pid_t>& pids) {
  return visit_cgroups(directory,
                       [&](const sys::Fd& one) { return append_own_processes(one, pids); });
}

}  // namespace berth::runtime
