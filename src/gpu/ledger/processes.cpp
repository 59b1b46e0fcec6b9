// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/processes.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "gpu/grant/occupancy.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::gpu {
namespace {

constexpr int kMostParents = 128;
constexpr size_t kMaxStatus = 65536;

/// `cgroup` in the form of /proc/PID/cgroup: "/a/b".
std::string normal(const std::string& cgroup) {
  std::string path = "/" + cgroup;
  path.erase(0, path.find_first_not_of('/') - 1);
  return path;
}

/// The owners are compared, because a user could record any cgroup in a lease.
bool is_in_cgroup(const SeenProcess& process, const KnownLease& known) {
  const Life& life = known.lease.life;
  if (known.user != 0 || life.cgroup.find_first_not_of('/') == std::string::npos) return false;
  const std::string cgroup = normal(life.cgroup);
  return std::ranges::any_of(process.cgroups,
                             [&](const std::string& path) { return is_below(path, cgroup); });
}

/// The owners are compared, because a user could record any process as the first one of a
/// container.
bool is_first_process(int64_t pid, const SeenProcess& process, const KnownLease& known,
                      const SeeProcess& see) {
  const Life& life = known.lease.life;
  if (life.pid != pid || life.start_time != process.start_time) return false;
  if (known.user == 0 || process.user == known.user) return true;
  auto parent = see(process.parent);  // the process may run as a subordinate id of the user
  return parent && parent->user == known.user;
}

/// The MPS server has the GPU open for the programs of containers, but is not in any container. A
/// user who fakes such a process only makes it count for that user's own container.
bool serves(const SeenProcess& process, const KnownLease& known, const SeeProcess& see) {
  constexpr std::string_view kServer = "nvidia-cuda-mps";  // the kernel keeps 15 characters
  if (!known.lease.mps || !process.command.starts_with(kServer)) return false;
  if (process.user == known.user) return true;
  auto daemon = see(process.parent);  // a server may run as a subordinate id of the user
  return daemon && daemon->user == known.user;
}

/// The value after "Name:" in /proc/PID/status.
std::string_view value_of(std::string_view status, std::string_view name) {
  for (std::string_view line : split(status, '\n')) {
    if (line.starts_with(name)) return trim(line.substr(name.size()));
  }
  return {};
}

}  // namespace

std::optional<SeenProcess> see_process(int64_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  auto status = sys::read_file_if_exists(sys::cwd(), directory + "/status", kMaxStatus);
  if (!status.ok() || !*status) return std::nullopt;
  SeenProcess seen;
  seen.parent = static_cast<int64_t>(parse_u64(value_of(**status, "PPid:")).value_or(0));
  seen.command = value_of(**status, "Name:");
  auto user = parse_u64(split(value_of(**status, "Uid:"), '\t')[0]);
  if (user) seen.user = static_cast<uint32_t>(*user);
  auto start_time = sys::process_start_time(static_cast<pid_t>(pid));
  if (!start_time.ok()) return std::nullopt;
  seen.start_time = *start_time;
  auto cgroups = sys::read_file_if_exists(sys::cwd(), directory + "/cgroup", kMaxStatus);
  if (!cgroups.ok() || !*cgroups) return seen;
  for (std::string_view line : split(**cgroups, '\n')) {  // "4:memory:/a/b", "0::/a/b"
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second != std::string_view::npos) seen.cgroups.emplace_back(line.substr(second + 1));
  }
  return seen;
}

const KnownLease* lease_of(int64_t pid, const std::vector<const KnownLease*>& leases,
                           const ProcessView& view) {
  for (int i = 0; i < kMostParents && pid > 1 && !leases.empty(); ++i) {
    auto seen = view.see(pid);
    if (!seen) return nullptr;
    auto found = std::ranges::find_if(leases, [&](const KnownLease* one) {
      if (one->lease.life.pid_space != view.pid_space) return false;
      return is_first_process(pid, *seen, *one, view.see) || is_in_cgroup(*seen, *one) ||
             (i == 0 && serves(*seen, *one, view.see));
    });
    if (found != leases.end()) return *found;
    pid = seen->parent;
  }
  return nullptr;
}

std::vector<const KnownLease*> leases_on(std::string_view key,
                                         const std::vector<KnownLease>& leases) {
  std::vector<const KnownLease*> found;
  for (const KnownLease& one : leases) {
    bool has = std::ranges::any_of(one.lease.keys,
                                   [&](const std::string& held) { return overlaps(held, key); });
    if (has) found.push_back(&one);
  }
  return found;
}

}  // namespace berth::gpu
