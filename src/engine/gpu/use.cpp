// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/use.hpp"

#include <algorithm>

#include "engine/gpu/list.hpp"
#include "engine/state/directory.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/probe/amd_use.hpp"
#include "oci/config.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::milliseconds kDeadline{10000};

GpuUse use_of(std::string name, std::optional<uint32_t> busy,
              const std::optional<gpu::MemoryUse>& memory) {
  GpuUse use{std::move(name), busy, std::nullopt, std::nullopt};
  if (!memory) return use;
  use.used_bytes = memory->used;
  use.total_bytes = memory->total;
  return use;
}

bool has_all(const std::set<std::string>& nodes, const std::vector<gpu::Node>& wanted) {
  return !wanted.empty() && std::ranges::all_of(wanted, [&](const gpu::Node& node) {
    return nodes.contains(node.path);
  });
}

void add_slices(const std::set<std::string>& nodes, const gpu::Gpu& gpu, const gpu::Use& known,
                std::vector<GpuUse>& found) {
  for (const gpu::MigDevice& slice : gpu.mig) {
    if (!has_all(nodes, slice.nodes)) continue;
    auto same = std::ranges::find_if(known.slices, [&](const auto& one) {
      return one.gpu_instance == slice.gpu_instance &&
             one.compute_instance == slice.compute_instance;
    });
    found.push_back(use_of(gpu::index_of({&gpu, &slice}), std::nullopt,
                           same == known.slices.end() ? std::nullopt : same->memory));
  }
}

void add_partitions(const std::set<std::string>& nodes, const gpu::Gpu& gpu,
                    std::vector<GpuUse>& found) {
  for (const gpu::Partition& one : gpu.partitions) {
    if (has_all(nodes, one.nodes))
      found.push_back(use_of(gpu::index_of({&gpu, nullptr, &one}), std::nullopt, std::nullopt));
  }
}

}  // namespace

Result<gpu::Uses> try_nvml_use(const Context& context, const gpu::Inventory& inventory,
                               std::chrono::milliseconds deadline) {
  const gpu::DriverFile* library = gpu::find_nvml(inventory);
  if (library == nullptr) return gpu::Uses();
  const std::string program = context.paths.libexec + "/berth-gpu-probe";
  return gpu::ask_nvml_use(program, library->host_path, deadline);
}

std::optional<gpu::Uses> nvml_use(const Context& context, const gpu::Inventory& inventory) {
  auto use = try_nvml_use(context, inventory, kDeadline);
  if (use.ok()) return std::move(*use);
  context.log.warn("cannot read how busy the GPUs are: " + to_line(use.error()) + ", ignoring");
  return std::nullopt;
}

std::set<std::string> nodes_given(const Context& context, const ContainerSummary& container) {
  std::set<std::string> nodes;
  std::string bundle = files_of(context, container) + "/" + std::string(kBundleDirectory);
  auto text = sys::read_file_if_exists(sys::cwd(), bundle + "/config.json");
  if (!text.ok() || !*text) return nodes;
  auto spec = oci::parse_spec(**text);
  if (!spec.ok()) return nodes;
  for (const auto& device : spec->linux_.devices) nodes.insert(device.path);
  for (const auto& mount : spec->mounts) nodes.insert(mount.destination);
  return nodes;
}

std::vector<GpuUse> gpus_of(const std::set<std::string>& nodes, const gpu::Inventory& inventory,
                            const gpu::Uses& use) {
  std::vector<GpuUse> found;
  for (const gpu::Gpu& gpu : inventory.gpus) {
    add_partitions(nodes, gpu, found);  // the first partition has the GPU's own node
    if (!gpu.partitions.empty() || !nodes.contains(gpu.node.path)) continue;
    auto same = std::ranges::find(use.gpus, gpu.pci_address, &gpu::Use::pci_address);
    gpu::Use known = same == use.gpus.end() ? gpu::Use{} : *same;
    if (gpu.mig.empty()) {
      found.push_back(use_of(std::to_string(gpu.index), known.busy_percent, known.memory));
    } else {
      add_slices(nodes, gpu, known, found);
    }
  }
  return found;
}

Result<std::map<std::string, std::vector<GpuUse>>> gpu_use(
    const Context& context, const std::vector<ContainerSummary>& containers) {
  std::map<std::string, std::set<std::string>> nodes;
  for (const ContainerSummary& container : containers) {
    if (!is_alive(container.state)) continue;
    auto found = nodes_given(context, container);
    std::erase_if(found, [](const std::string& path) {
      return !path.starts_with("/dev/nvidia") && !path.starts_with("/dev/dri/");
    });
    if (!found.empty()) nodes.emplace(container.id, std::move(found));
  }
  std::map<std::string, std::vector<GpuUse>> uses;
  if (nodes.empty()) return uses;
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  gpu::Uses use = nvml_use(context, inventory).value_or(gpu::Uses());
  gpu::add_amd_uses(inventory, use);
  for (const auto& [id, paths] : nodes) {
    auto gpus = gpus_of(paths, inventory, use);
    if (!gpus.empty()) uses.emplace(id, std::move(gpus));
  }
  return uses;
}

}  // namespace berth::engine
