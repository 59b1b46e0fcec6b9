// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/mps.hpp"

#include <algorithm>

#include "engine/gpu/use.hpp"
#include "gpu/ledger/processes.hpp"
#include "gpu/mps/join.hpp"
#include "gpu/probe/probe.hpp"
#include "gpu/probe/use.hpp"

namespace berth::engine {
namespace {

constexpr const char* kControl = "nvidia-cuda-mps-control";
constexpr const char* kServer = "nvidia-cuda-mps-server";
constexpr std::chrono::seconds kMpsPatience{10};

Error refused(Kind kind, const gpu::MpsLimits& limits, const std::string& why, std::string hint) {
  std::string flags = limits.cores_percent ? "--gpu-cores" : "--gpu-memory";
  if (limits.cores_percent && limits.memory_bytes) flags += ", --gpu-memory";
  return make_error(kind, flags + ": " + why, std::move(hint));
}

const gpu::DriverFile* find_program(const gpu::Inventory& inventory, std::string_view name) {
  auto found = std::ranges::find_if(inventory.files, [&](const gpu::DriverFile& file) {
    return file.kind == gpu::FileKind::binary && file.name == name;
  });
  return found == inventory.files.end() ? nullptr : &*found;
}

/// The server, and the libraries that a container for computing has.
std::vector<gpu::MpsFile> mps_files(const gpu::Inventory& inventory) {
  std::vector<gpu::MpsFile> files;
  const gpu::DriverFile* server = find_program(inventory, kServer);
  if (server != nullptr) files.push_back({server->name, server->host_path});
  for (const gpu::DriverFile& file : inventory.files) {
    bool computes = std::ranges::find(file.capabilities, "compute") != file.capabilities.end();
    if (file.kind != gpu::FileKind::library || file.elf32 || !computes) continue;
    bool is_known = std::ranges::find(files, file.soname, &gpu::MpsFile::name) != files.end();
    if (!is_known) files.push_back({file.soname, file.host_path});
  }
  return files;
}

/// The uid of the container's first program in our user namespace.
uint32_t user_of(const oci::Spec& spec) {
  const uint32_t inside = spec.process ? spec.process->user.uid : 0;
  for (const oci::IdMapping& one : spec.linux_.uid_mappings) {
    bool covers = inside >= one.container_id && inside - one.container_id < one.size;
    if (covers) return one.host_id + (inside - one.container_id);
  }
  return inside;
}

std::string mode_of(const MpsPlan& plan, const gpu::Gpu& gpu) {
  auto known = plan.modes.find(gpu.pci_address);
  return known == plan.modes.end() ? std::string() : known->second;
}

}  // namespace

Result<MpsPlan> plan_mps(const Context& context, const RunRequest& request, const policy::Gpu& site,
                         const gpu::Inventory& inventory, const oci::Spec& spec) {
  MpsPlan plan;
  plan.user = user_of(spec);
  plan.takes = site.manage && context.identity == Identity::root;
  plan.limits.cores_percent = request.gpu_cores;
  if (request.gpu_memory) plan.regions = TRY(memory_regions_of(inventory));
  bool by_mps =
      find_program(inventory, kControl) != nullptr && lacks_region(inventory, plan.regions);
  if (request.gpu_memory && by_mps) plan.limits.memory_bytes = request.gpu_memory->most;
  if (!plan.wanted()) return plan;
  gpu::Uses uses = TRY_CTX(try_nvml_use(context, inventory, kMpsPatience),
                           "cannot tell the compute mode of GPUs");
  for (const gpu::Use& one : uses.gpus) {
    if (!one.compute_mode.empty()) plan.modes[one.pci_address] = one.compute_mode;
  }
  return plan;
}

gpu::MpsLimits limits_by_mps(const MpsPlan& plan, const std::vector<gpu::Selected>& selected) {
  gpu::MpsLimits limits = plan.limits;
  bool by_kernel =
      !selected.empty() && std::ranges::all_of(selected, [&](const gpu::Selected& one) {
        return has_region(*one.gpu, plan.regions);
      });
  if (by_kernel) limits.memory_bytes.reset();
  return limits;
}

Result<void> check_mps(const RunRequest& request, const gpu::MpsLimits& limits,
                       const gpu::Inventory& inventory) {
  if (find_program(inventory, kControl) == nullptr) {
    return refused(Kind::unsupported, limits,
                   "nothing on this machine can keep programs to a part of a GPU: NVIDIA's driver "
                   "has no nvidia-cuda-mps-control here",
                   "a MIG slice, or leave it out");
  }
  using Mode = NamespaceMode::Kind;
  const Mode ipc = request.ipc.kind;
  bool own_memory = ipc == Mode::usual || ipc == Mode::own || ipc == Mode::shareable;
  auto is_memory = [](const auto& one) { return one.destination == "/dev/shm"; };
  own_memory = own_memory && std::ranges::none_of(request.volumes, is_memory);
  own_memory = own_memory && std::ranges::none_of(request.tmpfs, is_memory);
  if (!own_memory || request.shm_bytes.value_or(0) > 0) {
    return refused(Kind::usage, limits, "MPS has /dev/shm, which its containers share",
                   "leave --ipc, --shm-size and what is mounted there out");
  }
  constexpr uint64_t kMiB = uint64_t{1} << 20;  // the unit of MPS
  if (limits.memory_bytes.value_or(kMiB) < kMiB) {
    return refused(Kind::usage, limits, "MPS counts in MiB", "--gpu-memory 10g");
  }
  if (request.gpu_memory && request.gpu_memory->kept) {
    return refused(Kind::unsupported, limits, "MPS keeps nothing for anybody", "--gpu-memory 10g");
  }
  return {};
}

Result<gpu::MpsShare> share_of(const MpsPlan& plan, const gpu::MpsLimits& limits,
                               const std::vector<gpu::Selected>& selected) {
  gpu::MpsShare share{plan.user, {}, limits};
  for (const gpu::Selected& one : selected) {
    const std::string name = "GPU " + gpu::index_of(one);
    if (one.slice != nullptr || one.partition != nullptr) {
      return refused(Kind::unsupported, limits, name + " is a part that has its own",
                     "leave it out");
    }
    if (one.gpu->vendor != gpu::Vendor::nvidia || one.gpu->uuid.empty()) {
      return refused(Kind::unsupported, limits,
                     name + ": MPS is for GPUs that NVIDIA's driver knows", "leave it out");
    }
    if (limits.memory_bytes && one.gpu->memory_bytes.value_or(UINT64_MAX) < *limits.memory_bytes) {
      return refused(Kind::usage, limits,
                     name + " has " + std::to_string(*one.gpu->memory_bytes) + " bytes",
                     "berth gpu list");
    }
    if (mode_of(plan, *one.gpu) == gpu::kProhibited) {
      return refused(Kind::denied, limits, name + " is in the compute mode 'prohibited'",
                     "nvidia-smi -c 0");
    }
    share.gpus.push_back(one.gpu->uuid);
  }
  if (share.gpus.empty()) return refused(Kind::usage, limits, "no GPU was requested", "--gpus 1");
  std::ranges::sort(share.gpus);
  return share;
}

Result<void> check_share(const MpsPlan& plan, const std::vector<gpu::Selected>& selected,
                         const gpu::Holders& holders, const gpu::Lease& lease) {
  for (const gpu::Selected& one : selected) {
    bool alone = plan.takes || mode_of(plan, *one.gpu) == gpu::kExclusiveProcess;
    if (!alone) continue;
    for (const gpu::KnownLease* other : gpu::leases_on(gpu::key_of(one), holders.leases)) {
      const auto& theirs = other->lease.mps;
      bool same = theirs && lease.mps && theirs->share == lease.mps->share;
      if (same || other->lease.container == lease.container) continue;
      return make_error(
          Kind::busy,
          "GPU " + gpu::index_of(one) + " is for one process at a time, and " +
              gpu::holder_text(*other) +
              (theirs ? " has it through MPS with other limits or GPUs" : " has it without MPS"),
          "berth gpu list");
    }
  }
  return {};
}

void add_share(const gpu::MpsPlace& place, oci::Spec& spec) {
  oci::Mount pipes;
  pipes.destination = gpu::kMpsPipes;
  pipes.type = "bind";
  pipes.source = place.pipes;
  pipes.options = {"bind", "ro", "nosuid", "noexec", "nodev", "rprivate"};
  spec.mounts.push_back(std::move(pipes));
  for (oci::Mount& mount : spec.mounts) {
    if (mount.destination != "/dev/shm") continue;
    mount.type = "bind";
    mount.source = place.memory;
    mount.options = {"bind", "nosuid", "noexec", "nodev", "rprivate"};
  }
  if (!spec.process) return;
  const std::string name = std::string(gpu::kMpsPipesVariable) + "=";
  std::erase_if(spec.process->env,
                [&](const std::string& entry) { return entry.starts_with(name); });
  spec.process->env.push_back(name + gpu::kMpsPipes);
}

Result<void> start_share(const Context& context, const MpsPlan& plan, const gpu::MpsShare& share,
                         const std::vector<gpu::Selected>& selected,
                         const gpu::Inventory& inventory, const gpu::HeldLease& lease) {
  gpu::MpsOrder order;
  order.share = share;
  order.ledger = lease.note().ledger;
  const gpu::DriverFile* control = find_program(inventory, kControl);
  const gpu::DriverFile* nvml = gpu::find_nvml(inventory);
  if (control == nullptr || nvml == nullptr) {
    return make_error(Kind::unsupported, "NVIDIA's driver has no MPS here");
  }
  order.control = control->host_path;
  order.nvml = nvml->host_path;
  order.files = mps_files(inventory);
  order.probe = context.paths.libexec + "/berth-gpu-probe";
  order.takes = plan.takes;
  order.group = lease.lease().group;
  order.keys = lease.lease().keys;
  for (const gpu::Selected& one : selected) order.nodes.push_back(one.gpu->node.host_path);
  auto around = std::ranges::find_if(selected, [&](const gpu::Selected& one) {
    return !plan.takes && mode_of(plan, *one.gpu) != gpu::kExclusiveProcess;
  });
  if (around != selected.end() && plan.wanted()) {
    context.log.warn("a program that does not use MPS is not bound by these limits: GPU " +
                     gpu::index_of(*around) + " is not in exclusive-process mode");
  }
  return gpu::join_share(context.paths.state, context.paths.libexec + "/berth-mps", order);
}

}  // namespace berth::engine
