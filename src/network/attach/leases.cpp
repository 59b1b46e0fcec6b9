// SPDX-License-Identifier: Apache-2.0
#include "network/attach/leases.hpp"

#include <fcntl.h>
#include <signal.h>

#include <chrono>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::network {
namespace {

constexpr size_t kMaxLease = size_t{16} << 20;  // enough for a range of all ports
constexpr const char* kLockFile = "lock";
constexpr std::string_view kSuffix = ".json";

/// An id becomes part of file names.
Result<void> check_id(const std::string& id) {
  if (!id.empty() && id.size() <= 255 && id[0] != '.' && id.find('/') == id.npos) return {};
  return make_error(Kind::usage, "container id " + quote(id) + ": it cannot name a file");
}

}  // namespace

Result<ProcessName> name_process(int pid) {
  return ProcessName{pid, TRY(sys::process_start_time(pid))};
}

bool lives(const ProcessName& process) {
  auto start = sys::process_start_time(process.pid);
  return start.ok() && *start == process.start_time;
}

void end_helper(const Lease& lease) {
  if (!lease.helper) return;
  auto handle = sys::open_pidfd(lease.helper->pid);
  // Checked after we have the handle: before that, another process could get the pid.
  if (!handle.ok() || !lives(*lease.helper)) return;
  sys::Process helper(lease.helper->pid, std::move(*handle));
  for (int signal : {SIGTERM, SIGKILL}) {
    ignore(helper.signal(signal));
    auto ended = sys::await_end(helper.pidfd(), std::chrono::seconds(1));
    if (!ended.ok() || *ended) break;
  }
  helper.release();  // not our child
}

Result<Leases> Leases::unlocked(const std::string& directory) {
  Leases leases;
  leases.path_ = directory;
  TRY(sys::make_directories(sys::cwd(), directory, 0700));
  leases.directory_ = TRY(sys::open_at(sys::cwd(), directory, O_RDONLY | O_DIRECTORY));
  return leases;
}

Result<Leases> Leases::open(const std::string& directory) {
  Leases leases = TRY(unlocked(directory));
  leases.lock_ =
      TRY(sys::open_at(leases.directory_, kLockFile, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY(sys::wait_lock(leases.lock_, sys::LockMode::exclusive, directory + "/" + kLockFile));
  return leases;
}

Result<std::vector<Lease>> Leases::sweep() {
  std::string boot = TRY(sys::boot_id());
  std::vector<Lease> living;
  for (const std::string& name : TRY(sys::list_directory(directory_, "."))) {
    if (!name.ends_with(kSuffix)) continue;
    auto lease = find(name.substr(0, name.size() - kSuffix.size()));
    // A truncated lease, left by a killed writer, does not count.
    bool readable = lease.ok() && *lease;
    bool current = readable && (*lease)->boot_id == boot;
    if (current && lives((*lease)->holder)) {
      living.push_back(std::move(**lease));
      continue;
    }
    if (current) end_helper(**lease);
    TRY(sys::remove_entry(directory_, name));
  }
  return living;
}

Result<std::optional<Lease>> Leases::find(const std::string& id) const {
  TRY(check_id(id));
  auto text = TRY(sys::read_file_if_exists(directory_, lease_file(id), kMaxLease));
  if (!text) return std::optional<Lease>();
  return std::optional<Lease>(TRY(json::read<Lease>(*text, path_ + "/" + lease_file(id))));
}

Result<void> Leases::write(const Lease& lease) const {
  TRY(check_id(lease.id));
  return sys::replace_file(directory_, lease_file(lease.id), json::write(lease), 0600);
}

Result<void> Leases::remove(const std::string& id) const {
  TRY(check_id(id));
  return sys::remove_entry(directory_, lease_file(id));
}

}  // namespace berth::network
