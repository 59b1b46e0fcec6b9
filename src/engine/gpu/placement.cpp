// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/placement.hpp"

#include <fcntl.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr const char* kNodes = "sys/devices/system/node";
constexpr std::string_view kNode = "node";

Numbers both(const Numbers& a, const Numbers& b) {
  Numbers out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

}  // namespace

Result<NumaNodes> read_numa_nodes(const sys::Fd& root) {
  NumaNodes nodes;
  if (!TRY(sys::stat_entry(root, kNodes))) return nodes;
  std::vector<std::string> names = TRY(sys::list_directory(root, kNodes, 4096));
  for (const std::string& name : names) {
    if (!name.starts_with(kNode)) continue;
    auto number = parse_u64(std::string_view(name).substr(kNode.size()));
    if (!number || *number > 4096) continue;
    auto cpus = TRY(sys::read_file_if_exists(root, std::string(kNodes) + "/" + name + "/cpulist"));
    // A node without processors has only memory: of a GPU, or of a memory expander.
    if (!cpus || trim(*cpus).empty()) continue;
    if (auto numbers = parse_numbers(*cpus)) nodes[static_cast<int>(*number)] = *numbers;
  }
  return nodes;
}

Result<NumaNodes> numa_nodes_of(const gpu::Inventory& inventory) {
  std::string root = inventory.synthetic ? inventory.driver_root : "/";
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), root, O_RDONLY | O_DIRECTORY));
  return read_numa_nodes(directory);
}

Allowed parse_allowed(std::string_view status) {
  Allowed allowed;
  auto take = [](std::string_view line, std::string_view key, Numbers& target) {
    if (!line.starts_with(key)) return;
    if (auto numbers = parse_numbers(line.substr(key.size()))) target = *numbers;
  };
  for (std::string_view line : split(status, '\n')) {
    take(line, "Cpus_allowed_list:", allowed.cpus);
    take(line, "Mems_allowed_list:", allowed.mems);
  }
  return allowed;
}

std::optional<Placement> place_beside(const std::vector<gpu::Selected>& gpus,
                                      const NumaNodes& nodes, const Allowed& allowed) {
  Numbers cpus, mems;
  for (const gpu::Selected& one : gpus) {
    auto node = one.gpu->numa_node ? nodes.find(*one.gpu->numa_node) : nodes.end();
    if (node == nodes.end()) return std::nullopt;
    cpus.insert(node->second.begin(), node->second.end());
    mems.insert(static_cast<unsigned>(node->first));
  }
  cpus = both(cpus, allowed.cpus);
  if (cpus.empty() || cpus == allowed.cpus) return std::nullopt;
  return Placement{to_text(cpus), to_text(both(mems, allowed.mems))};
}

void set_placement(const Placement& placement, KeptBy by, oci::Spec& spec) {
  if (by == KeptBy::affinity) {
    spec.annotations[std::string(oci::kProcessorsAnnotation)] = placement.cpus;
    if (placement.mems.empty()) return;
    spec.annotations[std::string(oci::kMemoryNodesAnnotation)] = placement.mems;
    return;
  }
  if (!spec.linux_.resources) spec.linux_.resources.emplace();
  if (!spec.linux_.resources->cpu) spec.linux_.resources->cpu.emplace();
  spec.linux_.resources->cpu->cpus = placement.cpus;
  spec.linux_.resources->cpu->mems = placement.mems;
}

bool has_cpusets() {
  auto old = sys::stat_entry(sys::cwd(), "/sys/fs/cgroup/cpuset");
  if (old.ok() && *old) return true;
  auto controllers = sys::read_file_if_exists(sys::cwd(), "/sys/fs/cgroup/cgroup.controllers");
  if (!controllers.ok() || !*controllers) return false;
  auto words = split_blank(**controllers);
  return std::ranges::find(words, "cpuset") != words.end();
}

}  // namespace berth::engine
