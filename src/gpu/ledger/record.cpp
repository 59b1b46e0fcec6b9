// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/record.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/process/process.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kMostKeys = 256;
constexpr size_t kLongestWord = 256;

template <class T>
Result<std::string> text_of(const T& record) {
  std::string text = json::write(record);
  if (text.size() > kRecordSize) {
    return make_error(Kind::usage,
                      fmt::format("write down {} GPUs of container {}: no room in "
                                  "{} bytes",
                                  record.keys.size(), quote(record.container), kRecordSize));
  }
  text.resize(kRecordSize, ' ');
  return text;
}

// Records that Berth writes have no other characters.
bool is_word(std::string_view text) {
  auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  return text.size() <= kLongestWord && std::ranges::all_of(text, plain);
}

template <class T>
Result<T> parse(std::string_view text, const char* name) {
  if (text.size() > kRecordSize) {
    return make_error(Kind::corrupt, fmt::format("{}: more than {} bytes", name, kRecordSize));
  }
  T record = TRY(json::read<T>(trim(text), name));
  bool fine = is_word(record.container) && is_word(record.name) && is_word(record.group) &&
              !record.group.empty() && record.keys.size() <= kMostKeys;
  for (const std::string& key : record.keys) fine = fine && is_word(key) && !key.empty();
  if (!fine) return make_error(Kind::corrupt, fmt::format("{}: not written by Berth", name));
  return record;
}

/// Mount points of the unified hierarchy and of those v1 hierarchies in which every container has a
/// cgroup.
constexpr const char* kHierarchies[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                        "/sys/fs/cgroup/pids", "/sys/fs/cgroup/devices"};

bool has_ended(pid_t pid) {
  auto handle = sys::open_pidfd(pid);
  if (!handle.ok()) return handle.error().kind == Kind::not_found;
  auto ended = sys::await_end(*handle, std::chrono::milliseconds(0));
  return ended.ok() && *ended;
}

// Whether the cgroup has processes. With v2 those of its child cgroups count too, and cgroup.events
// says it; v1 has no such file.
bool is_populated(const std::string& directory) {
  auto events = sys::read_file_if_exists(sys::cwd(), directory + "/cgroup.events", 4096);
  if (events.ok() && *events) return (*events)->find("populated 1") != std::string::npos;
  auto processes = sys::read_file_if_exists(sys::cwd(), directory + "/cgroup.procs", 65536);
  if (!processes.ok()) return processes.error().kind == Kind::corrupt;  // more than we read
  return *processes && !trim(**processes).empty();
}

bool has_processes(const std::string& cgroup) {
  bool own = cgroup.find_first_not_of('/') != std::string::npos;  // the root cgroup has everything
  if (!own || cgroup.find("..") != std::string::npos) return false;
  for (const char* hierarchy : kHierarchies) {
    if (is_populated(std::string(hierarchy) + "/" + cgroup)) return true;
  }
  return false;
}

bool is_first_process_alive(const Life& life) {
  auto pid = static_cast<pid_t>(life.pid);
  auto start_time = sys::process_start_time(pid);
  // If the start time is unreadable, the process is hidden from us or has ended; has_ended() asks
  // the kernel.
  if (start_time.ok() && *start_time != life.start_time) return false;
  return !has_ended(pid);
}

}  // namespace

Result<std::string> record_text(const Lease& lease) {
  return text_of(lease);
}

Result<std::string> record_text(const Ticket& ticket) {
  return text_of(ticket);
}

Result<Lease> parse_lease(std::string_view text) {
  Lease lease = TRY(parse<Lease>(text, "lease"));
  bool fine = is_word(lease.engine) && is_word(lease.life.boot) && lease.life.pid >= 0 &&
              lease.life.cgroup.size() <= kRecordSize &&
              (!lease.mps || (is_word(lease.mps->share) && !lease.mps->share.empty()));
  if (!fine) return make_error(Kind::corrupt, "lease: not written by Berth");
  return lease;
}

Result<Ticket> parse_ticket(std::string_view text) {
  return parse<Ticket>(text, "ticket");
}

std::string user_text(uid_t user) {
  constexpr uid_t kUnmappedUid = 65534;  // of all users without an id in this user namespace
  bool own = user == sys::effective_uid() && !sys::in_initial_user_namespace();
  if (own) return "this user";
  if (user == 0) return "root";
  return user == kUnmappedUid ? "another user" : fmt::format("user {}", user);
}

std::string holder_text(const std::string& name, const std::string& container, uid_t user) {
  std::string who = name.empty() ? container.substr(0, 12) : name;
  return fmt::format("container {} of {}", quote(who), user_text(user));
}

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

Result<sys::Fd> make_record(const sys::Fd& directory, const std::string& name,
                            const std::string& text) {
  std::string temporary = std::string(kNewPrefix) + sys::random_hex(8);
  sys::Fd file =
      TRY(sys::open_at(directory, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  auto fill = [&]() -> Result<void> {
    // Locked before other processes can open the file and lock it.
    TRY(sys::wait_lock(file, sys::LockMode::shared, name));
    TRY(sys::write_all(file, text, name));
    TRY(sys::change_mode(file, 0644, temporary));
    return sys::rename_new(directory, temporary, directory, name);
  };
  auto filled = fill();
  if (filled.ok()) return file;
  ignore(sys::remove_entry(directory, temporary));
  return std::move(filled).error();
}

int64_t nanoseconds_since_1970() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace berth::gpu
