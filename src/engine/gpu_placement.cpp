// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu_placement.hpp"

#include <set>

#include "base/text.hpp"
#include "sys/file.hpp"

namespace berth::engine {
namespace {

constexpr const char* kNodes = "sys/devices/system/node";
constexpr std::string_view kNode = "node";

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
    // One without processors is memory alone: of a GPU, or of a device that extends the machine's.
    if (cpus && !trim(*cpus).empty()) nodes[static_cast<int>(*number)] = trim(*cpus);
  }
  return nodes;
}

std::optional<Placement> place_beside(const std::vector<gpu::Selected>& gpus,
                                      const NumaNodes& nodes) {
  std::set<int> beside;
  for (const gpu::Selected& one : gpus) {
    if (!one.gpu->numa_node || !nodes.contains(*one.gpu->numa_node)) return std::nullopt;
    beside.insert(*one.gpu->numa_node);
  }
  if (beside.empty() || beside.size() == nodes.size()) return std::nullopt;
  std::vector<std::string> cpus, mems;
  for (int node : beside) {
    cpus.push_back(nodes.at(node));
    mems.push_back(std::to_string(node));
  }
  return Placement{join(cpus, ","), join(mems, ",")};
}

}  // namespace berth::engine
