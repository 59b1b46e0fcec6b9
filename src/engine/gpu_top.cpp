// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu_top.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/gpu_use.hpp"
#include "engine/gpus.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/ledger/alive.hpp"
#include "sys/file.hpp"
#include "sys/process.hpp"

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

/// Another user can name any cgroup.
bool is_in_cgroup(const SeenProcess& process, const gpu::KnownLease& known) {
  const gpu::Life& life = known.lease.life;
  if (known.user != 0 || life.cgroup.find_first_not_of('/') == std::string::npos) return false;
  const std::string cgroup = normal(life.cgroup);
  return std::any_of(process.cgroups.begin(), process.cgroups.end(),
                     [&](const std::string& path) { return is_below(path, cgroup); });
}

/// Another user can name any process as his container's.
bool is_first_process(int64_t pid, const SeenProcess& process, const gpu::KnownLease& known,
                      const SeeProcess& see) {
  const gpu::Life& life = known.lease.life;
  if (life.pid != pid || life.start_time != process.start_time) return false;
  if (known.user == 0 || process.user == known.user) return true;
  auto parent = see(process.parent);  // a container of his may run as one of his further ids
  return parent && parent->user == known.user;
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

/// Of one GPU, or of one slice of it.
class StateMaker {
 public:
  StateMaker(const gpu::NvmlUse& use, const gpu::Holders& holders, const ProcessView& view)
      : use_(use), holders_(holders), view_(view) {}

  GpuState whole(const gpu::Gpu& gpu) const;
  GpuState slice(const gpu::Gpu& gpu, const gpu::MigDevice& slice) const;
  GpuState partition(const gpu::Gpu& gpu, const gpu::Partition& partition) const;

 private:
  GpuState make(const gpu::Selected& selected) const;
  const gpu::NvmlGpuUse* use_of(const gpu::Gpu& gpu) const;
  void add_process(const gpu::NvmlProcess& told, GpuState& state) const;

  const gpu::NvmlUse& use_;
  const gpu::Holders& holders_;
  const ProcessView& view_;
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

void StateMaker::add_process(const gpu::NvmlProcess& told, GpuState& state) const {
  GpuProcess& process = state.processes->emplace_back();
  process.pid = told.pid;
  process.used_bytes = told.used_bytes;
  auto seen = view_.see(told.pid);
  if (!seen) return;
  process.command = seen->command;
  process.user = seen->user;
  const gpu::KnownLease* found = lease_of(told.pid, state.leases, view_);
  if (found != nullptr) process.lease = found->lease;
}

GpuState StateMaker::whole(const gpu::Gpu& gpu) const {
  GpuState state = make({&gpu});
  const gpu::NvmlGpuUse* known = use_of(gpu);
  if (known == nullptr) return state;
  state.busy_percent = known->busy_percent;
  state.memory = known->memory;
  state.celsius = known->celsius;
  state.milliwatts = known->milliwatts;
  if (!gpu.mig.empty()) return state;
  state.processes.emplace();
  for (const gpu::NvmlProcess& one : known->processes) add_process(one, state);
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
  state.processes.emplace();
  for (const gpu::NvmlProcess& one : known->processes) {
    if (one.gpu_instance == slice.gpu_instance && one.compute_instance == slice.compute_instance)
      add_process(one, state);
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
                                const ProcessView& view) {
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    auto seen = view.see(pid);
    if (!seen) return nullptr;
    auto found = std::find_if(leases.begin(), leases.end(), [&](const gpu::KnownLease& one) {
      if (one.lease.life.pid_space != view.pid_space) return false;
      return is_first_process(pid, *seen, one, view.see) || is_in_cgroup(*seen, one);
    });
    if (found != leases.end()) return &*found;
    pid = seen->parent;
  }
  return nullptr;
}

std::vector<GpuState> gpu_states(const gpu::Inventory& inventory, const gpu::NvmlUse& use,
                                 const gpu::Holders& holders, const ProcessView& view) {
  StateMaker maker(use, holders, view);
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
  GpuTop top;
  gpu::Holders holders;
  auto held = list_gpu_holders(context);
  if (held.ok()) {
    holders = *std::move(held);
    top.waiting = holders.queue.size();
  } else {
    context.log.warn(to_line(held.error()) + ", ignoring");
  }
  gpu::Here here = TRY(gpu::look_around());
  ProcessView view{see_process, here.pid_space};
  top.synthetic = inventory.synthetic;
  top.gpus = gpu_states(inventory, nvml_use(context, inventory), holders, view);
  return top;
}

}  // namespace berth::engine
