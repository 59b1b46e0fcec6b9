// SPDX-License-Identifier: Apache-2.0
#include "oci/edit.hpp"

#include <algorithm>

namespace berth::oci {
namespace {

void add_device(const DeviceNode& node, Spec& spec) {
  auto& devices = spec.linux_.devices;
  std::erase_if(devices, [&](const Device& device) { return device.path == node.path; });
  devices.push_back(
      {node.type, node.path, node.major, node.minor, node.file_mode, node.uid, node.gid});
  if (!spec.linux_.resources) spec.linux_.resources.emplace();
  spec.linux_.resources->devices.push_back(
      {true, node.type, node.major, node.minor, node.permissions});
  if (!node.host_path.empty() && node.host_path != node.path) {
    spec.annotations[std::string(kDeviceSourceAnnotation) + node.path] = node.host_path;
  }
}

}  // namespace

void set_env(std::vector<std::string>& env, std::string assignment) {
  std::string prefix = assignment.substr(0, assignment.find('=')) + "=";
  auto same = std::find_if(env.begin(), env.end(),
                           [&](const std::string& old) { return old.starts_with(prefix); });
  if (same == env.end()) {
    env.push_back(std::move(assignment));
  } else {
    *same = std::move(assignment);
  }
}

void apply(const ContainerEdits& edits, Spec& spec) {
  if (!spec.process && !(edits.env.empty() && edits.additional_gids.empty())) {
    spec.process.emplace();
  }
  for (const auto& assignment : edits.env) set_env(spec.process->env, assignment);
  for (const auto& node : edits.device_nodes) add_device(node, spec);
  spec.mounts.insert(spec.mounts.end(), edits.mounts.begin(), edits.mounts.end());
  for (uint32_t gid : edits.additional_gids) {
    auto& gids = spec.process->user.additional_gids;
    if (std::find(gids.begin(), gids.end(), gid) == gids.end()) gids.push_back(gid);
  }
}

}  // namespace berth::oci
