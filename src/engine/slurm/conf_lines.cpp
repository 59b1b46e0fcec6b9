// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/conf_lines.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/gpu/list.hpp"
#include "engine/node/node.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

/// The host name without the domain, as slurmd compares it.
std::string short_name(const std::string& host) {
  return host.substr(0, host.find('.'));
}

Result<void> check_name(const std::string& name) {
  bool bad = std::ranges::any_of(
      name, [](char c) { return c <= ' ' || c == 0x7f || c == '#' || c == '='; });
  if (!name.empty() && !bad) return {};
  return make_error(Kind::usage, "--node: expected a name of slurm.conf, got " + quote(name),
                    "--node n1, or --node 'n[1-8]' for identical nodes");
}

/// The place of a processor; members are empty if the kernel does not report them.
Result<ProcessorPlace> place_of(const sys::Fd& root, unsigned processor) {
  std::string base = "sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
  auto core = TRY(sys::read_file_if_exists(root, base + "thread_siblings_list"));
  auto package = TRY(sys::read_file_if_exists(root, base + "core_siblings_list"));
  return ProcessorPlace{parse_numbers(core.value_or("")).value_or(Numbers()),
                        parse_numbers(package.value_or("")).value_or(Numbers())};
}

Result<NumaNodes> cores_of(const gpu::Inventory& inventory) {
  NumaNodes nodes = TRY(numa_nodes_of(inventory));
  std::string path = inventory.synthetic ? inventory.driver_root : "/";
  sys::Fd root = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY));
  std::map<unsigned, ProcessorPlace> places;
  for (const auto& [node, processors] : nodes) {
    for (unsigned processor : processors) places[processor] = TRY(place_of(root, processor));
  }
  return number_cores(nodes, places);
}

void warn_of_unknown_slices(const Context& context, const node::Profile& profile) {
  bool unknown = std::ranges::any_of(
      profile.gpus, [](const auto& gpu) { return gpu.mig && gpu.mig_profiles.empty(); });
  if (!unknown) return;
  context.log.warn(
      "the driver lists no slice of a GPU in MIG mode (see 'berth doctor gpu'), ignoring the GPU");
}

}  // namespace

Result<SlurmNode> slurm_node(const Context& context, const SlurmRequest& request) {
  if (request.profile && request.devices) {
    return make_error(
        Kind::usage,
        "print the lines of gres.conf: a saved profile does not contain the device nodes",
        "berth slurm features --gres-conf on the node itself");
  }
  node::Profile profile = TRY(node_of(context, request.profile));
  SlurmNode node;
  node.name = request.name.value_or(short_name(profile.name));
  TRY(check_name(node.name));
  node.features = slurm_features(profile);
  node.gres = slurm_gres(profile);
  node.synthetic = profile.synthetic;
  warn_of_unknown_slices(context, profile);
  if (!request.devices) return node;
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  NumaNodes cores = TRY(cores_of(inventory));
  node.devices = slurm_devices(inventory, cores);
  return node;
}

}  // namespace berth::engine
