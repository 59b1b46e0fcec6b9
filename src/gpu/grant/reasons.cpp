// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/reasons.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

const char* kind_of(FileKind kind) {
  static constexpr const char* kNames[] = {"library",  "program", "socket",   "configuration",
                                           "firmware", "module",  "directory"};
  return kNames[static_cast<size_t>(kind)];
}

bool is_in(const std::vector<Node>& nodes, const std::string& path) {
  return std::ranges::any_of(nodes, [&](const Node& node) { return node.path == path; });
}

class Reasons {
 public:
  Reasons(const Inventory& inventory, Grant& grant) : inventory_(inventory), grant_(grant) {
    told_ = grant.reasons;
    size_t most = grant.reasons.size() + grant.nodes.size() + grant.links.size() +
                  grant.env.size() + inventory.files.size() + inventory.gpus.size() + 16;
    known_.reserve(most);
    grant.reasons.reserve(most);
    for (const Reason& reason : told_) known_.insert(reason.object);
    files_.reserve(inventory.files.size());
    for (const DriverFile& file : inventory.files) files_.emplace(file.host_path, &file);
  }

  void run() {
    for (const Node& node : grant_.nodes) add("node", node.path, why_node(node), node.host_path);
    add_files();
    for (const GrantedLink& link : grant_.links) add("link", link.path, "leads to " + link.target);
    for (const GrantedLink& program : grant_.volume_programs)
      add("program", program.path, "the same file as " + program.target);
    for (const std::string& variable : grant_.env)
      add("variable", variable, why_variable(variable));
    add_left_out_nodes();
    add_left_out_files();
  }

 private:
  /// `object` has to live as long as the grant and the inventory.
  void add(const char* kind, const std::string& object, std::string why,
           const std::string& host_path = {}, bool given = true) {
    if (!known_.insert(object).second) return;
    std::string from = host_path == object ? std::string() : host_path;
    grant_.reasons.push_back({kind, object, given, std::move(why), std::move(from)});
  }

  std::string why_node(const Node& node) const;
  static std::string why_variable(std::string_view variable);
  void add_files();
  void add_left_out_nodes();
  void add_left_out_files();
  bool has_node(const std::string& path) const { return is_in(grant_.nodes, path); }
  bool is_nvidia() const { return grant_.vendor == Vendor::nvidia; }
  void add_left_out_partitions(const Gpu& gpu);

  const Inventory& inventory_;
  Grant& grant_;
  std::vector<Reason> told_;  ///< objects that had a reason before
  std::unordered_set<std::string_view> known_;
  std::unordered_map<std::string_view, const DriverFile*> files_;  ///< by host path
};

std::string why_of_gpu(const Gpu& gpu, const Node& node) {
  const std::string name = "GPU " + std::to_string(gpu.index);
  for (const Partition& part : gpu.partitions) {
    if (is_in(part.nodes, node.path)) return name + ", partition " + std::to_string(part.index);
  }
  if (gpu.node.path == node.path) return name;
  for (const Node& drm : gpu.drm_nodes) {
    if (drm.path != node.path) continue;
    return gpu.vendor == Vendor::nvidia ? name + ", for graphics and display" : name;
  }
  for (const MigDevice& slice : gpu.mig) {
    for (const Node& capability : slice.nodes) {
      if (capability.path == node.path) {
        return "the right to use slice " + std::to_string(gpu.index) + ":" +
               std::to_string(slice.index);
      }
    }
  }
  return {};
}

std::string Reasons::why_node(const Node& node) const {
  for (const Gpu& gpu : inventory_.gpus) {
    std::string why = why_of_gpu(gpu, node);
    if (!why.empty()) return why;
  }
  if (node.path == "/dev/nvidiactl") return "every program that uses the driver opens it";
  if (node.path.starts_with("/dev/nvidia-uvm")) return "CUDA's memory, for capability compute";
  if (node.path == "/dev/nvidia-modeset") return "for capability graphics or display";
  if (node.path == "/dev/kfd") return "AMD's compute interface";
  return "it was asked for";
}

std::string Reasons::why_variable(std::string_view variable) {
  if (variable.starts_with("NVIDIA_VISIBLE_DEVICES=")) return "tells what was granted";
  if (variable.starts_with("NVIDIA_DRIVER_CAPABILITIES=")) {
    return "names the driver's files that are here";
  }
  return "of the grant";
}

void Reasons::add_files() {
  for (const GrantedFile& file : grant_.files) {
    std::string why = "of the driver";
    auto found = files_.find(file.host_path);
    if (found != files_.end() && !found->second->capabilities.empty()) {
      why = "capability " + join(found->second->capabilities, " or ");
    }
    add(kind_of(file.kind), file.container_path, std::move(why), file.host_path);
  }
}

void Reasons::add_left_out_nodes() {
  for (const Gpu& gpu : inventory_.gpus) {
    if (!gpu.partitions.empty()) {
      add_left_out_partitions(gpu);
    } else if (!has_node(gpu.node.path)) {
      add("node", gpu.node.path, "GPU " + std::to_string(gpu.index) + " was not granted", {},
          false);
    }
  }
  for (const Node& node : inventory_.control_nodes) {
    if (has_node(node.path)) continue;
    bool compute = node.path.starts_with("/dev/nvidia-uvm");
    std::string why = compute ? "capability compute was not asked for"
                              : "capability graphics or display was not asked for";
    if (!is_nvidia()) why = "no NVIDIA GPU was granted";
    add("node", node.path, std::move(why), {}, false);
  }
}

void Reasons::add_left_out_partitions(const Gpu& gpu) {
  for (const Partition& part : gpu.partitions) {
    for (const Node& node : part.nodes) {
      if (has_node(node.path)) continue;
      add("node", node.path,
          "partition " + std::to_string(gpu.index) + ":" + std::to_string(part.index) +
              " was not granted",
          {}, false);
    }
  }
}

void Reasons::add_left_out_files() {
  std::unordered_set<std::string_view> granted;
  granted.reserve(grant_.files.size());
  for (const GrantedFile& file : grant_.files) granted.insert(file.host_path);
  for (const DriverFile& file : inventory_.files) {
    if (granted.contains(file.host_path)) continue;
    std::string why = "capability " + join(file.capabilities, " or ") + " was not asked for";
    if (file.capabilities.empty()) why = "nothing asked for it";
    bool none = grant_.mode == policy::DriverMode::image || grant_.mode == policy::DriverMode::none;
    if (none) why = "only device nodes are added to this container (--gpu-driver)";
    if (!is_nvidia()) why = "no NVIDIA GPU was granted";
    if (file.elf32 && !none) why = "32-bit, and capability compat32 was not asked for";
    // Names the host's path, because a granted file may have the same name.
    add(kind_of(file.kind), file.host_path, std::move(why), {}, false);
  }
}

}  // namespace

void complete_reasons(const Inventory& inventory, Grant& grant) {
  Reasons(inventory, grant).run();
}

}  // namespace berth::gpu
