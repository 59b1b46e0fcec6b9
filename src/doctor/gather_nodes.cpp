// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "doctor/gather.hpp"
#include "gpu/inventory/kernel.hpp"
#include "gpu/probe/devices.hpp"
#include "sys/file/file.hpp"

namespace berth::doctor {
namespace {

constexpr size_t kMaxGroupFile = size_t{4} << 20;

// Collects NodeFacts. The members are the values with which each node is compared.
class Nodes {
 public:
  Nodes(const gpu::DriverRoot& root, const gpu::Inventory& inventory)
      : root_(root), inventory_(inventory) {}

  std::vector<NodeFacts> run() {
    read_table();
    read_groups();
    for (const gpu::Node& node : inventory_.control_nodes) add(node, "the driver", is_extra(node));
    add_listed_gpus();
    for (const gpu::Node& node : inventory_.amd_control_nodes) add(node, "AMD's driver", false);
    for (const gpu::Gpu& gpu : inventory_.gpus) add_gpu(gpu);
    for (const gpu::Node& node : inventory_.mig_control_nodes) add(node, "the driver", true);
    return std::move(out_);
  }

 private:
  void read_table();
  void read_groups();
  void add_listed_gpus();
  void add_gpu(const gpu::Gpu& gpu);
  void add(const gpu::Node& node, std::string owner, bool optional);
  void look(NodeFacts& facts) const;

  // CUDA and NVML work without these two nodes.
  static bool is_extra(const gpu::Node& node) {
    return node.path == "/dev/nvidia-uvm-tools" || node.path == "/dev/nvidia-modeset";
  }

  const gpu::DriverRoot& root_;
  const gpu::Inventory& inventory_;
  std::vector<gpu::Node> table_;  ///< the node table of a synthetic tree
  std::map<uint32_t, std::string> groups_;
  std::vector<NodeFacts> out_;
};

void Nodes::read_table() {
  if (!root_.synthetic()) return;
  auto text = root_.read_machine("/dev/nodes");
  if (!text.ok() || !*text) return;
  auto table = gpu::parse_node_table(**text);
  if (table.ok()) table_ = std::move(*table);
}

void Nodes::read_groups() {
  auto text = sys::read_file_if_exists(sys::cwd(), "/etc/group", kMaxGroupFile);
  if (!text.ok() || !*text) return;
  for (std::string_view line : split(**text, '\n')) {
    auto parts = split(line, ':');
    auto gid = parts.size() >= 3 ? parse_u64(parts[2]) : std::nullopt;
    if (gid && *gid <= UINT32_MAX) groups_.emplace(static_cast<uint32_t>(*gid), parts[0]);
  }
}

// Adds the GPUs that procfs lists; the inventory leaves out GPUs without a node.
void Nodes::add_listed_gpus() {
  const std::string base = "/proc/driver/nvidia/gpus";
  auto addresses = root_.list_machine(base);
  if (!addresses.ok()) return;
  for (const std::string& address : *addresses) {
    auto text = root_.read_machine(base + "/" + address + "/information");
    auto labels = gpu::parse_labels(text.ok() ? text->value_or("") : "");
    auto minor_number = parse_u64(labels["Device Minor"]);
    if (!minor_number || *minor_number > UINT32_MAX || labels["GPU Excluded"] == "Yes") continue;
    gpu::Node node;
    node.minor = static_cast<uint32_t>(*minor_number);
    node.path = fmt::format("/dev/nvidia{}", node.minor);
    node.major = 195;
    for (const gpu::Node& control : inventory_.control_nodes) {
      if (control.path == "/dev/nvidiactl") node.major = control.major;
    }
    add(node, "the GPU at " + address, false);
  }
}

void Nodes::add_gpu(const gpu::Gpu& gpu) {
  if (gpu.vendor != gpu::Vendor::nvidia) add(gpu.node, fmt::format("GPU {}", gpu.index), false);
  for (const gpu::MigDevice& slice : gpu.mig) {
    for (const gpu::Node& node : slice.nodes) {
      add(node, fmt::format("slice {}:{}", gpu.index, slice.index), false);
    }
  }
}

void Nodes::add(const gpu::Node& node, std::string owner, bool optional) {
  auto same = [&](const NodeFacts& known) { return known.expected.path == node.path; };
  if (node.path.empty() || std::ranges::any_of(out_, same)) return;
  NodeFacts facts;
  facts.expected = node;
  facts.owner = std::move(owner);
  facts.optional = optional;
  look(facts);
  out_.push_back(std::move(facts));
}

void Nodes::look(NodeFacts& facts) const {
  const gpu::Node& node = facts.expected;
  std::string link = fmt::format("/dev/char/{}:{}", node.major, node.minor);
  facts.char_link = root_.stat_machine(link).has_value();
  auto info = root_.stat_machine(node.path);
  if (!info) {
    for (const gpu::Node& row : table_) {
      if (row.path != node.path) continue;
      facts.found = facts.character = true;
      facts.major = row.major;
      facts.minor = row.minor;
      facts.mode = row.mode;
    }
    return;
  }
  facts.found = true;
  facts.character = S_ISCHR(info->st_mode);
  facts.major = major(info->st_rdev);
  facts.minor = minor(info->st_rdev);
  facts.mode = info->st_mode & 07777;
  facts.gid = info->st_gid;
  auto group = groups_.find(facts.gid);
  facts.group = group == groups_.end() ? std::to_string(facts.gid) : group->second;
  // Programs open capability nodes for reading only.
  int mode = node.path.starts_with("/dev/nvidia-caps/") ? R_OK : R_OK | W_OK;
  auto access = sys::check_access(sys::cwd(), root_.machine_path(node.path), mode);
  if (!access.ok()) facts.access_errno = access.error().sys_errno;
}

}  // namespace

std::vector<NodeFacts> gather_nodes(const gpu::DriverRoot& root, const gpu::Inventory& inventory) {
  return Nodes(root, inventory).run();
}

}  // namespace berth::doctor
