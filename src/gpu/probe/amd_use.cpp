// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/amd_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/kernel.hpp"
#include "gpu/probe/nodes.hpp"

namespace berth::gpu {
namespace {

/// 58000 → 58; nothing for numbers over 32 bits.
std::optional<uint32_t> in_thousands(std::optional<uint64_t> value) {
  constexpr uint64_t kThousand = 1000;
  if (!value || *value / kThousand > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*value / kThousand);
}

class AmdUses {
 public:
  explicit AmdUses(const DriverRoot& root) : root_(root) {
    for (const auto& [id, node] : read_kfd_nodes(root)) nodes_[node.pci_address].push_back(id);
    read_pids();
  }
  Use use_of(const Gpu& gpu) const;

 private:
  void read_pids();
  void read_sensors(const std::string& base, Use& use) const;
  std::optional<std::vector<ProcessUse>> processes_on(const Gpu& gpu) const;

  std::string text(const std::string& path) const;
  std::optional<uint64_t> number(const std::string& path) const { return parse_u64(text(path)); }
  std::vector<std::string> names(const std::string& path) const;

  const DriverRoot& root_;
  /// Ids of KFD's nodes by PCI address of the GPU; a partitioned GPU has several.
  std::map<std::string, std::vector<uint64_t>> nodes_;
  std::optional<std::set<uint32_t>> pids_;
};

// A value that the kernel refuses (a sensor of a GPU that is off) is absent.
std::string AmdUses::text(const std::string& path) const {
  auto found = root_.read_machine(path);
  return found.ok() && *found ? std::string(trim(**found)) : std::string();
}

std::vector<std::string> AmdUses::names(const std::string& path) const {
  auto found = root_.list_machine(path);
  return found.ok() ? std::move(*found) : std::vector<std::string>();
}

void AmdUses::read_pids() {
  if (!root_.stat_machine(std::string(kKfdProcesses))) return;
  pids_.emplace();
  for (const std::string& name : names(std::string(kKfdProcesses))) {
    if (auto pid = parse_u32(name)) pids_->insert(*pid);
  }
}

Use AmdUses::use_of(const Gpu& gpu) const {
  const std::string base = "/sys/bus/pci/devices/" + gpu.pci_address;
  Use use;
  use.pci_address = gpu.pci_address;
  auto used = number(base + "/mem_info_vram_used"), total = number(base + "/mem_info_vram_total");
  if (used && total) use.memory = MemoryUse{*used, *total};
  use.processes = processes_on(gpu);
  // Reading the sensors of a suspended GPU would wake it.
  if (text(base + "/power/runtime_status") != "suspended") read_sensors(base, use);
  return use;
}

void AmdUses::read_sensors(const std::string& base, Use& use) const {
  constexpr uint64_t kAll = 100;
  auto busy = number(base + "/gpu_busy_percent");
  if (busy && *busy <= kAll) use.busy_percent = static_cast<uint32_t>(*busy);
  auto sensors = names(base + "/hwmon");
  if (sensors.empty()) return;
  const std::string hwmon = base + "/hwmon/" + sensors.front();
  auto first_of = [&](const char* one, const char* other) {
    auto value = number(hwmon + one);
    return value ? value : number(hwmon + other);
  };
  // The temperature at the edge of the chip; some GPUs only report the hottest spot (MI300).
  use.celsius = in_thousands(first_of("/temp1_input", "/temp2_input"));
  // The power of the chip in microwatts: the average, or else the present value.
  use.milliwatts = in_thousands(first_of("/power1_average", "/power1_input"));
}

// KFD has a file for each process that has opened it and each GPU that the process may use. The
// file contains zero if the process does nothing on that GPU.
std::optional<std::vector<ProcessUse>> AmdUses::processes_on(const Gpu& gpu) const {
  auto ids = nodes_.find(gpu.pci_address);
  if (ids == nodes_.end() || !pids_) return std::nullopt;
  std::vector<ProcessUse> found;
  for (uint32_t pid : *pids_) {
    uint64_t bytes = 0;
    for (uint64_t id : ids->second)
      bytes += number(fmt::format("{}/{}/vram_{}", kKfdProcesses, pid, id)).value_or(0);
    if (bytes == 0) continue;
    ProcessUse& process = found.emplace_back();
    process.pid = pid;
    process.used_bytes = bytes;
  }
  return found;
}

}  // namespace

void add_amd_uses(const Inventory& inventory, Uses& uses) {
  auto is_amd = [](const Gpu& gpu) { return gpu.vendor == Vendor::amd; };
  if (std::ranges::none_of(inventory.gpus, is_amd)) return;
  auto root = DriverRoot::open(inventory.driver_root);
  if (!root.ok()) return;
  AmdUses reader(*root);
  for (const Gpu& gpu : inventory.gpus) {
    if (is_amd(gpu)) uses.gpus.push_back(reader.use_of(gpu));
  }
}

}  // namespace berth::gpu
