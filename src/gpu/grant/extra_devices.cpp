// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/extra_devices.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace berth::gpu {
namespace {

/// A feature with a device group in the inventory.
struct Gate {
  bool Features::*wanted;
  std::string_view variable;
  std::string_view group;
  std::string_view what;  ///< for messages
  std::string_view hint;
};

constexpr Gate kGates[] = {
    {&Features::gds, "NVIDIA_GDS", "gds", "GPUDirect Storage ('/dev/nvidia-fs0')",
     "modprobe nvidia-fs"},
    {&Features::mofed, "NVIDIA_MOFED", "mofed", "InfiniBand ('/dev/infiniband/uverbs0')",
     "modprobe ib_uverbs"},
    {&Features::gdrcopy, "NVIDIA_GDRCOPY", "gdrcopy", "GDRCopy ('/dev/gdrdrv')", "modprobe gdrdrv"},
    {&Features::nvswitch, "NVIDIA_NVSWITCH", "nvswitch", "NVSwitch ('/dev/nvidia-nvswitchctl')",
     "berth gpu list"},
};
constexpr std::string_view kChannels = "NVIDIA_IMEX_CHANNELS";

class Finder {
 public:
  Finder(const Request& request, const Inventory& inventory)
      : request_(request), inventory_(inventory) {}

  Result<ExtraDevices> run() {
    for (const Gate& gate : kGates) {
      if (request_.features.*gate.wanted) TRY(take_group(gate));
    }
    const Features& features = request_.features;
    if (features.mig_config) TRY(take_mig_right(0, "NVIDIA_MIG_CONFIG_DEVICES"));
    if (features.mig_monitor) TRY(take_mig_right(1, "NVIDIA_MIG_MONITOR_DEVICES"));
    if (!features.imex_channels.empty()) TRY(take_channels());
    return std::move(items_);
  }

 private:
  Result<void> take_group(const Gate& gate);
  Result<void> take_mig_right(size_t index, std::string_view variable);
  Result<void> take_channels();
  Result<void> miss(std::string_view variable, std::string_view what, std::string_view hint);

  const DeviceGroup* find_group(std::string_view name) const {
    auto found = std::ranges::find(inventory_.groups, name, &DeviceGroup::name);
    return found == inventory_.groups.end() ? nullptr : &*found;
  }
  void take(const Node& node, std::string_view variable) {
    items_.nodes.push_back(node);
    items_.reasons.push_back(
        {"node", node.path, true, fmt::format("{} asks for it", variable), node.host_path});
  }
  void take_files(const DeviceGroup& group) {
    items_.files.insert(items_.files.end(), group.files.begin(), group.files.end());
  }

  const Request& request_;
  const Inventory& inventory_;
  ExtraDevices items_;
};

Result<void> Finder::miss(std::string_view variable, std::string_view what, std::string_view hint) {
  const auto& demanded = request_.demanded;
  std::string line = fmt::format("this machine has no {}", what);
  if (std::ranges::find(demanded, variable) != demanded.end()) {
    return make_error(Kind::not_found, fmt::format("{}: {}", variable, line), std::string(hint));
  }
  items_.reasons.push_back({"feature", std::string(variable), false, std::move(line), {}});
  return {};
}

Result<void> Finder::take_group(const Gate& gate) {
  const DeviceGroup* group = find_group(gate.group);
  if (group == nullptr) return miss(gate.variable, gate.what, gate.hint);
  for (const Node& node : group->nodes) take(node, gate.variable);
  take_files(*group);
  return {};
}

Result<void> Finder::take_mig_right(size_t index, std::string_view variable) {
  if (index >= inventory_.mig_control_nodes.size()) {
    return miss(variable, "GPU in MIG mode", "nvidia-smi -mig 1");
  }
  take(inventory_.mig_control_nodes[index], variable);
  return {};
}

// The number of a channel is the minor of its node; the driver does not make the node.
Result<void> Finder::take_channels() {
  const DeviceGroup* group = find_group("imex");
  if (group == nullptr || !group->major) {
    return miss(kChannels, "IMEX channels ('nvidia-caps-imex-channels' in '/proc/devices')",
                "berth gpu list");
  }
  for (uint32_t channel : request_.features.imex_channels) {
    Node node;
    node.path = fmt::format("/dev/nvidia-caps-imex-channels/channel{}", channel);
    node.major = *group->major;
    node.minor = channel;
    auto there = std::ranges::find(group->nodes, node.path, &Node::path);
    take(there == group->nodes.end() ? node : *there, kChannels);
  }
  take_files(*group);
  return {};
}

}  // namespace

Result<ExtraDevices> find_extra_devices(const Request& request, const Inventory& inventory) {
  return Finder(request, inventory).run();
}

}  // namespace berth::gpu
