// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/alive.hpp"

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::gpu {
namespace {

/// Mount points: of the unified hierarchy, and of those of v1 that every container is in.
constexpr const char* kHierarchies[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                        "/sys/fs/cgroup/pids", "/sys/fs/cgroup/devices"};

bool has_ended(pid_t pid) {
  auto handle = sys::open_pidfd(pid);
  if (!handle.ok()) return handle.error().kind == Kind::not_found;
  auto ended = sys::await_end(*handle, std::chrono::milliseconds(0));
  return ended.ok() && *ended;
}

// Without this line it is no cgroup file.
bool is_populated(const std::string& directory) {
  auto events = sys::read_file_if_exists(sys::cwd(), directory + "/cgroup.events", 4096);
  if (events.ok() && *events) return (*events)->find("populated 1") != std::string::npos;
  auto processes = sys::read_file_if_exists(sys::cwd(), directory + "/cgroup.procs", 65536);
  if (!processes.ok()) return processes.error().kind == Kind::corrupt;  // more than we read
  return *processes && !trim(**processes).empty();
}

bool has_processes(const std::string& cgroup) {
  bool own = cgroup.find_first_not_of('/') != std::string::npos;  // the root belongs to all
  if (!own || cgroup.find("..") != std::string::npos) return false;
  for (const char* hierarchy : kHierarchies) {
    if (is_populated(std::string(hierarchy) + "/" + cgroup)) return true;
  }
  return false;
}

bool is_first_process_alive(const Life& life) {
  auto pid = static_cast<pid_t>(life.pid);
  auto start_time = sys::process_start_time(pid);
  // Hidden from us, or ended: the kernel answers which.
  if (start_time.ok() && *start_time != life.start_time) return false;
  return !has_ended(pid);
}

}  // namespace

Result<Here> look_around() {
  std::string link = TRY(sys::read_link(sys::cwd(), "/proc/self/ns/pid"));  // "pid:[4026531836]"
  auto number =
      parse_u64(std::string_view(link).substr(0, link.size() - 1).substr(link.find('[') + 1));
  if (!number) return make_error(Kind::corrupt, "read /proc/self/ns/pid: " + quote(link));
  return Here{TRY(sys::boot_id()), *number};
}

Result<Life> life_of(pid_t pid, std::string cgroup, const Here& here) {
  return Life{pid, TRY(sys::process_start_time(pid)), here.pid_space, here.boot, std::move(cgroup)};
}

bool is_alive(const Life& life, const Here& here) {
  if (life.pid <= 0 || life.boot != here.boot) return false;
  if (life.pid_space != here.pid_space) return true;
  return is_first_process_alive(life) || has_processes(life.cgroup);
}

}  // namespace berth::gpu
