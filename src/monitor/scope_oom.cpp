// SPDX-License-Identifier: Apache-2.0
#include "monitor/scope_oom.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "sys/fd/notify.hpp"
#include "sys/file/file.hpp"

namespace berth::monitor {
namespace {

constexpr size_t kLongest = 64 * 1024;
constexpr const char* kMounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

/// "/user.slice/…/berth-12.scope", or "" if the process is not in a scope.
std::string scope_of(pid_t pid) {
  auto text = sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/cgroup", kLongest);
  if (!text.ok()) return "";
  for (std::string_view line : split(*text, '\n')) {
    if (line.starts_with("0::/") && line.ends_with(".scope")) return std::string(line.substr(3));
  }
  return "";
}

}  // namespace

ScopeMemory::ScopeMemory(pid_t pid) {
  const std::string scope = scope_of(pid);
  if (scope.empty()) return;
  for (const char* mount : kMounts) {
    auto changes = sys::watch_file(file_ = mount + scope + "/memory.events");
    if (!changes.ok()) continue;
    changes_ = std::move(*changes);
    return;
  }
}

void ScopeMemory::look() {
  if (!changes_) return;
  sys::forget_events(changes_);
  auto text = sys::read_file(sys::cwd(), file_, kLongest);
  if (!text.ok()) {
    changes_.reset();  // the scope is gone
    return;
  }
  auto lines = split(*text, '\n');
  had_oom_kill_ = had_oom_kill_ || std::ranges::any_of(lines, [](std::string_view line) {
                    return line.starts_with("oom_kill ") && line != "oom_kill 0";
                  });
}

}  // namespace berth::monitor
