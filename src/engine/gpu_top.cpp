// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu_top.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/gpu_use.hpp"
#include "engine/gpus.hpp"
#include "gpu/grant/select.hpp"
#include "sys/file.hpp"

namespace berth::engine {
namespace {

constexpr int kMostAncestors = 128;
constexpr size_t kMaxStatus = 65536;

bool is_below(const std::string& path, const std::string& cgroup) {
  return path == cgroup || path.starts_with(cgroup + "/");
}

/// As /proc/PID/cgroup has it: "/a/b".
std::string normal(const std::string& cgroup) {
  std::string path = "/" + cgroup;
  path.erase(0, path.find_first_not_of('/') - 1);
  return path;
}

bool is_in_cgroup(const SeenProcess& process, const gpu::Life& life) {
  if (life.cgroup.find_first_not_of('/') == std::string::npos) return false;
  const std::string cgroup = normal(life.cgroup);
  return std::any_of(process.cgroups.begin(), process.cgroups.end(),
                     [&](const std::string& path) { return is_below(path, cgroup); });
}

/// The value behind "Name:" of /proc/PID/status.
std::string_view value_of(std::string_view status, std::string_view name) {
  for (std::string_view line : split(status, '\n')) {
    if (line.starts_with(name)) return trim(line.substr(name.size()));
  }
  return {};
}

/// Of /proc; nothing where it has ended, or is hidden from us.
std::optional<SeenProcess> see_process(int64_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  auto status = sys::read_file_if_exists(sys::cwd(), directory + "/status", kMaxStatus);
  if (!status.ok() || !*status) return std::nullopt;
  SeenProcess seen;
  seen.parent = static_cast<int64_t>(parse_u64(value_of(**status, "PPid:")).value_or(0));
  seen.command = value_of(**status, "Name:");
  auto user = parse_u64(split(value_of(**status, "Uid:"), '\t')[0]);
  if (user) seen.user = static_cast<uint32_t>(*user);
  auto cgroups = sys::read_file_if_exists(sys::cwd(), directory + "/cgroup", kMaxStatus);
  if (!cgroups.ok() || !*cgroups) return seen;
  for (std::string_view line : split(**cgroups, '\n')) {  // "4:memory:/a/b", "0::/a/b"
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second != std::string_view::npos) seen.cgroups.emplace_back(line.substr(second + 1));
  }
  return seen;
}

/// Of one GPU, or of one slice of it.
class StateMaker {
 public:
  StateMaker(const gpu::NvmlUse& use, const gpu::Holders& holders, const SeeProcess& see)
      : use_(use), holders_(holders), see_(see) {}

  GpuState whole(const gpu::Gpu& gpu) const;
  GpuState slice(const gpu::Gpu& gpu, const gpu::MigDevice& slice) const;
  GpuState partition(const gpu::Gpu& gpu, const gpu::Partition& partition) const;

 private:
  GpuState make(const gpu::Selected& selected) const;
  const gpu::NvmlGpuUse* use_of(const gpu::Gpu& gpu) const;
  GpuProcess process(const gpu::NvmlProcess& told) const;

  const gpu::NvmlUse& use_;
  const gpu::Holders& holders_;
  const SeeProcess& see_;
};

GpuState StateMaker::make(const gpu::Selected& selected) const {
  GpuState state;
  state.index = gpu::index_of(selected);
  state.id = gpu::name_of(selected);
  state.model = selected.gpu->model;
  const std::string key = gpu::key_of(selected);
  for (const gpu::KnownLease& one : holders_.leases) {
    bool has = std::any_of(one.lease.keys.begin(), one.lease.keys.end(),
                           [&](const std::string& held) { return gpu::overlaps(held, key); });
    if (has) state.leases.push_back(one);
  }
  return state;
}

const gpu::NvmlGpuUse* StateMaker::use_of(const gpu::Gpu& gpu) const {
  auto found = std::find_if(use_.gpus.begin(), use_.gpus.end(), [&](const gpu::NvmlGpuUse& one) {
    return one.pci_address == gpu.pci_address;
  });
  return found == use_.gpus.end() ? nullptr : &*found;
}

GpuProcess StateMaker::process(const gpu::NvmlProcess& told) const {
  GpuProcess process;
  process.pid = told.pid;
  process.used_bytes = told.used_bytes;
  auto seen = see_(told.pid);
  if (!seen) return process;
  process.command = seen->command;
  process.user = seen->user;
  const gpu::KnownLease* lease = lease_of(told.pid, holders_.leases, see_);
  if (lease != nullptr) process.container = container_of(lease->lease);
  return process;
}

GpuState StateMaker::whole(const gpu::Gpu& gpu) const {
  GpuState state = make({&gpu});
  const gpu::NvmlGpuUse* known = use_of(gpu);
  if (known == nullptr) return state;
  state.busy_percent = known->busy_percent;
  state.memory = known->memory;
  state.celsius = known->celsius;
  state.milliwatts = known->milliwatts;
  for (const gpu::NvmlProcess& one : known->processes) {
    if (gpu.mig.empty()) state.processes.push_back(process(one));
  }
  return state;
}

GpuState StateMaker::slice(const gpu::Gpu& gpu, const gpu::MigDevice& slice) const {
  GpuState state = make({&gpu, &slice});
  state.model = "MIG " + slice.profile;
  const gpu::NvmlGpuUse* known = use_of(gpu);
  if (known == nullptr) return state;
  for (const gpu::NvmlSliceUse& one : known->slices) {
    if (one.gpu_instance == slice.gpu_instance && one.compute_instance == slice.compute_instance)
      state.memory = one.memory;
  }
  for (const gpu::NvmlProcess& one : known->processes) {
    if (one.gpu_instance == slice.gpu_instance && one.compute_instance == slice.compute_instance)
      state.processes.push_back(process(one));
  }
  return state;
}

GpuState StateMaker::partition(const gpu::Gpu& gpu, const gpu::Partition& partition) const {
  GpuState state = make({&gpu, nullptr, &partition});
  state.model = gpu.compute_partition + " partition";
  return state;
}

}  // namespace

const gpu::KnownLease* lease_of(int64_t pid, const std::vector<gpu::KnownLease>& leases,
                                const SeeProcess& see) {
  auto find = [&](auto&& belongs) -> const gpu::KnownLease* {
    auto found = std::find_if(leases.begin(), leases.end(), [&](const gpu::KnownLease& one) {
      return one.lease.life.pid > 0 && belongs(one.lease.life);
    });
    return found == leases.end() ? nullptr : &*found;
  };
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    auto seen = see(pid);
    const gpu::KnownLease* found = find([&](const gpu::Life& life) {
      return life.pid == pid || (seen && is_in_cgroup(*seen, life));
    });
    if (found != nullptr || !seen) return found;
    pid = seen->parent;
  }
  return nullptr;
}

std::vector<GpuState> gpu_states(const gpu::Inventory& inventory, const gpu::NvmlUse& use,
                                 const gpu::Holders& holders, const SeeProcess& see) {
  StateMaker maker(use, holders, see);
  std::vector<GpuState> states;
  for (const gpu::Gpu& gpu : inventory.gpus) {
    states.push_back(maker.whole(gpu));
    for (const gpu::MigDevice& slice : gpu.mig) states.push_back(maker.slice(gpu, slice));
    for (const gpu::Partition& one : gpu.partitions) states.push_back(maker.partition(gpu, one));
  }
  return states;
}

std::string container_of(const gpu::Lease& lease) {
  constexpr size_t kShort = 12;
  return lease.name.empty() ? lease.container.substr(0, kShort) : lease.name;
}

Result<GpuTop> gpu_top(const Context& context) {
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  gpu::Holders holders;
  auto held = list_gpu_holders(context);
  if (held.ok()) {
    holders = *std::move(held);
  } else {
    context.log.warn(to_line(held.error()) + ", ignoring");
  }
  GpuTop top;
  top.synthetic = inventory.synthetic;
  top.gpus = gpu_states(inventory, nvml_use(context, inventory), holders, see_process);
  top.queue = std::move(holders.queue);
  return top;
}

}  // namespace berth::engine
