// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/groups.hpp"

namespace berth::gpu {
namespace {

void append(std::vector<Node>& to, std::vector<Node> from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append(std::vector<Node>& to, const std::optional<Node>& node) {
  if (node) to.push_back(*node);
}

// A file or directory at the same path in the container; nothing when it is not there.
void add_file(const std::optional<DriverRoot::Found>& found, std::string_view path,
              DeviceGroup& group) {
  if (!found || (!S_ISREG(found->info.st_mode) && !S_ISDIR(found->info.st_mode))) return;
  DriverFile file;
  file.kind = S_ISDIR(found->info.st_mode) ? FileKind::directory : FileKind::config;
  file.host_path = found->host_path;
  file.name = path.substr(path.rfind('/') + 1);
  file.container_path = path;
  group.files.push_back(std::move(file));
}

// GPUDirect Storage: cuFile looks the disks up in udev's database.
Result<DeviceGroup> read_gds(const DriverRoot& root, const NodeFinder& nodes) {
  DeviceGroup group{.name = "gds", .nodes = {}, .files = {}, .major = {}};
  append(group.nodes, nodes.find("/dev/nvidia-fs"));
  append(group.nodes, TRY(nodes.find_numbered("/dev", "nvidia-fs")));
  if (group.nodes.empty()) return group;
  auto settings = root.find("/etc/cufile.json");
  if (!settings) settings = root.find_on_machine("/etc/cufile.json");
  add_file(settings, "/etc/cufile.json", group);
  add_file(root.find_on_machine("/run/udev"), "/run/udev", group);
  return group;
}

Result<DeviceGroup> read_gdrcopy(const DriverRoot&, const NodeFinder& nodes) {
  DeviceGroup group{.name = "gdrcopy", .nodes = {}, .files = {}, .major = {}};
  append(group.nodes, nodes.find("/dev/gdrdrv"));
  return group;
}

Result<DeviceGroup> read_mofed(const DriverRoot&, const NodeFinder& nodes) {
  DeviceGroup group{.name = "mofed", .nodes = {}, .files = {}, .major = {}};
  append(group.nodes, TRY(nodes.find_numbered("/dev/infiniband", "uverbs")));
  append(group.nodes, nodes.find("/dev/infiniband/rdma_cm"));
  return group;
}

Result<DeviceGroup> read_nvswitch(const DriverRoot&, const NodeFinder& nodes) {
  DeviceGroup group{.name = "nvswitch", .nodes = {}, .files = {}, .major = {}};
  append(group.nodes, nodes.find("/dev/nvidia-nvswitchctl"));
  append(group.nodes, TRY(nodes.find_numbered("/dev", "nvidia-nvswitch")));
  return group;
}

// Memory shared between machines. The major alone is enough: root makes the nodes of channels.
Result<DeviceGroup> read_imex(const DriverRoot& root, const NodeFinder& nodes) {
  DeviceGroup group{.name = "imex", .nodes = {}, .files = {}, .major = {}};
  group.major = nodes.major_of("nvidia-caps-imex-channels");
  if (!group.major) return group;
  group.nodes = TRY(nodes.find_numbered("/dev/nvidia-caps-imex-channels", "channel"));
  std::erase_if(group.nodes, [&](const Node& node) { return node.major != *group.major; });
  add_file(root.find_on_machine("/run/nvidia-imex"), "/run/nvidia-imex", group);
  return group;
}

}  // namespace

Result<void> read_groups(const DriverRoot& root, const NodeFinder& nodes, Inventory& inventory) {
  for (auto* read : {read_gds, read_gdrcopy, read_mofed, read_nvswitch, read_imex}) {
    DeviceGroup group = TRY(read(root, nodes));
    if (!group.nodes.empty() || group.major) inventory.groups.push_back(std::move(group));
  }
  return {};
}

}  // namespace berth::gpu
