// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "node/gather/parts.hpp"

namespace berth::node {
namespace {

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxDevices = 1024;
constexpr const char* kDevices = "/sys/class/infiniband";

std::string name_of(const std::string& link) {
  return link.substr(link.rfind('/') + 1);
}

/// By driver where that is more specific than the link layer. Source: the kernel's
/// drivers/infiniband/hw; ABI/stable/sysfs-class-infiniband (link_layer, node_type).
std::string fabric_of(const gpu::DriverRoot& root, const std::string& device) {
  std::string base = std::string(kDevices) + "/" + device;
  std::string driver = name_of(root.link_machine(base + "/device/driver"));
  if (driver == "efa") return "efa";
  if (driver == "hfi1") return "opa";
  std::string type = start_of(root, base + "/node_type", kMaxText);
  if (trim(type).ends_with("RNIC")) return "iwarp";
  auto ports = root.list_machine(base + "/ports");
  if (!ports.ok() || ports->empty()) return {};
  std::string layer = start_of(root, base + "/ports/" + ports->front() + "/link_layer", kMaxText);
  std::string_view word = trim(layer);
  if (word == "InfiniBand") return "infiniband";
  return word == "Ethernet" ? "roce" : "";
}

}  // namespace

std::vector<std::string> gather_fabric(const gpu::DriverRoot& root) {
  std::vector<std::string> out;
  auto devices = root.list_machine(kDevices);
  for (size_t i = 0; devices.ok() && i < std::min(devices->size(), kMaxDevices); ++i) {
    std::string fabric = fabric_of(root, (*devices)[i]);
    if (!fabric.empty()) out.push_back(std::move(fabric));
  }
  auto cassini = root.list_machine("/sys/class/cxi");
  if (cassini.ok() && !cassini->empty()) out.emplace_back("slingshot");
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace berth::node
