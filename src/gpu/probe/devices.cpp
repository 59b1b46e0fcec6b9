// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "gpu/inventory/kernel.hpp"
#include "gpu/probe/drm.hpp"

namespace berth::gpu {
namespace {

constexpr std::string_view kProc = "/proc/driver/nvidia";
constexpr uint32_t kControlMinor = 255, kModesetMinor = 254;  // with the major of the GPUs
constexpr uint32_t kDefaultMajor = 195;
constexpr uint32_t kMigConfigMinor = 1, kMigMonitorMinor = 2;

std::string value_of(const std::map<std::string, std::string>& labels, const std::string& label) {
  auto found = labels.find(label);
  return found == labels.end() ? std::string() : found->second;
}

// The major of the nodes /dev/nvidia<N>.
uint32_t gpu_major(const NodeFinder& nodes) {
  auto found = nodes.major_of("nvidia");
  if (!found) found = nodes.major_of("nvidia-frontend");  // in older modules
  return found.value_or(kDefaultMajor);
}

// Reads NVIDIA's devices into an Inventory; the members are shared by several steps.
class Devices {
 public:
  Devices(const DriverRoot& root, NodeFinder& nodes, Inventory& inventory)
      : root_(root), nodes_(nodes), inventory_(inventory) {}

  Result<void> read() {
    TRY(read_gpus());
    read_control_nodes();
    return {};
  }

 private:
  Result<void> read_gpus();
  Result<std::optional<Gpu>> read_gpu(const std::string& address);
  Result<void> read_slices(Gpu& gpu);
  Result<std::optional<Node>> capability_node(const std::string& access_path);
  void read_control_nodes();
  void leave_out_absent_gpus();
  void problem(std::string text) { inventory_.problems.push_back(std::move(text)); }

  const DriverRoot& root_;
  NodeFinder& nodes_;
  Inventory& inventory_;
};

Result<void> Devices::read_gpus() {
  auto addresses = TRY(root_.list_machine(fmt::format("{}/gpus", kProc)));
  // nvidia-smi numbers GPUs by PCI address; the minors of their nodes may be in another order.
  std::ranges::sort(addresses, pci_before);
  for (const std::string& address : addresses) {
    auto gpu = TRY(read_gpu(address));
    if (gpu) inventory_.gpus.push_back(std::move(*gpu));
  }
  leave_out_absent_gpus();
  inventory_.left_out = static_cast<uint32_t>(addresses.size() - inventory_.gpus.size());
  uint32_t index = 0;
  for (Gpu& gpu : inventory_.gpus) gpu.index = index++;
  return {};
}

Result<std::optional<Gpu>> Devices::read_gpu(const std::string& address) {
  auto text = TRY(root_.read_machine(fmt::format("{}/gpus/{}/information", kProc, address)));
  auto labels = parse_labels(text.value_or(""));
  if (value_of(labels, "GPU Excluded") == "Yes") {
    problem(fmt::format("the driver excludes the GPU at {}", address));
    return std::optional<Gpu>();
  }
  auto minor = parse_u32(value_of(labels, "Device Minor"));
  if (!minor) {
    problem(
        fmt::format("the driver does not tell the node of the GPU at {}, ignoring it", address));
    return std::optional<Gpu>();
  }
  Gpu gpu;
  gpu.kernel_driver = "nvidia";
  gpu.pci_address = address;
  gpu.minor = *minor;
  gpu.model = value_of(labels, "Model");
  gpu.uuid = value_of(labels, "GPU UUID");
  if (gpu.uuid.find('?') != std::string::npos) gpu.uuid.clear();  // "GPU-????????-…": not known yet
  gpu.node =
      nodes_.expect(fmt::format("/dev/nvidia{}", gpu.minor), gpu_major(nodes_), gpu.minor, 0666);
  read_pci_facts(root_, nodes_, gpu);
  TRY(read_slices(gpu));
  return std::optional<Gpu>(std::move(gpu));
}

// Inside a batch job or a container, procfs still lists every GPU of the machine; the nodes show
// which GPUs are ours. If no GPU has a node yet, root can make all nodes.
void Devices::leave_out_absent_gpus() {
  auto is_absent = [this](const Gpu& gpu) { return nodes_.is_absent(gpu.node); };
  auto& gpus = inventory_.gpus;
  if (std::ranges::all_of(gpus, is_absent)) return;
  for (const Gpu& gpu : gpus) {
    if (is_absent(gpu)) {
      problem(fmt::format("the GPU at {} has no {} here, leaving it out", gpu.pci_address,
                          quote(gpu.node.path)));
    }
  }
  std::erase_if(gpus, is_absent);
}

Result<void> Devices::read_slices(Gpu& gpu) {
  std::string base = fmt::format("{}/capabilities/gpu{}/mig", kProc, gpu.minor);
  for (const std::string& gi_name : TRY(root_.list_machine(base))) {
    auto gi = numbered(gi_name, "gi");
    if (!gi) continue;
    auto gi_node = TRY(capability_node(fmt::format("{}/{}/access", base, gi_name)));
    for (const std::string& ci_name : TRY(root_.list_machine(base + "/" + gi_name))) {
      auto ci = numbered(ci_name, "ci");
      if (!ci) continue;
      auto ci_node = TRY(capability_node(fmt::format("{}/{}/{}/access", base, gi_name, ci_name)));
      if (!gi_node || !ci_node) {
        problem(fmt::format("the driver does not tell the nodes of {}/{} of GPU {}, ignoring it",
                            gi_name, ci_name, gpu.pci_address));
        continue;
      }
      MigDevice slice;
      slice.gpu_instance = *gi;
      slice.compute_instance = *ci;
      slice.nodes = {*gi_node, *ci_node};
      gpu.mig.push_back(std::move(slice));
    }
  }
  std::ranges::sort(gpu.mig, [](const MigDevice& left, const MigDevice& right) {
    return std::tie(left.gpu_instance, left.compute_instance) <
           std::tie(right.gpu_instance, right.compute_instance);
  });
  uint32_t index = 0;
  for (MigDevice& slice : gpu.mig) slice.index = index++;
  gpu.mig_mode = !gpu.mig.empty();
  return {};
}

// The minor is in the access file; the node may not exist before its first use.
Result<std::optional<Node>> Devices::capability_node(const std::string& access_path) {
  auto caps_major = nodes_.major_of("nvidia-caps");
  auto text = TRY(root_.read_machine(access_path));
  if (!text || !caps_major) return std::optional<Node>();
  auto labels = parse_labels(*text);
  auto minor = parse_u32(value_of(labels, "DeviceFileMinor"));
  if (!minor) return std::optional<Node>();
  uint32_t mode = parse_u32(value_of(labels, "DeviceFileMode")).value_or(0444);
  std::string path = fmt::format("/dev/nvidia-caps/nvidia-cap{}", *minor);
  return std::optional<Node>(nodes_.expect(path, *caps_major, *minor, mode));
}

void Devices::read_control_nodes() {
  if (inventory_.driver.module_version.empty()) return;
  auto& control = inventory_.control_nodes;
  uint32_t major = gpu_major(nodes_);
  control.push_back(nodes_.expect("/dev/nvidiactl", major, kControlMinor, 0666));
  if (auto uvm = nodes_.major_of("nvidia-uvm")) {
    control.push_back(nodes_.expect("/dev/nvidia-uvm", *uvm, 0, 0666));
    control.push_back(nodes_.expect("/dev/nvidia-uvm-tools", *uvm, 1, 0666));
  } else {
    problem("the module nvidia-uvm is not loaded, CUDA will not start; try: modprobe nvidia-uvm");
  }
  // Some driver releases list nvidia-modeset in /proc/devices, others only have the node.
  if (nodes_.major_of("nvidia-modeset") || nodes_.find("/dev/nvidia-modeset")) {
    control.push_back(nodes_.expect("/dev/nvidia-modeset", major, kModesetMinor, 0666));
  }
  bool any_slice =
      std::ranges::any_of(inventory_.gpus, [](const Gpu& gpu) { return !gpu.mig.empty(); });
  auto caps = nodes_.major_of("nvidia-caps");
  if (!caps || !any_slice) return;
  for (uint32_t minor : {kMigConfigMinor, kMigMonitorMinor}) {
    inventory_.mig_control_nodes.push_back(
        nodes_.expect(fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor), *caps, minor,
                      minor == kMigConfigMinor ? 0400 : 0444));
  }
}

void append(std::vector<Node>& to, std::vector<Node> from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append(std::vector<Node>& to, const std::optional<Node>& node) {
  if (node) to.push_back(*node);
}

// Adds a file or directory, at the same path in the container; adds nothing if it is not found.
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

// GPUDirect Storage: cuFile looks up disks in the database of udev.
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

// IMEX: memory shared between machines. The major is enough, because root makes the nodes of
// channels.
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

Result<void> read_nvidia_devices(const DriverRoot& root, NodeFinder& nodes, Inventory& inventory) {
  return Devices(root, nodes, inventory).read();
}

Result<void> read_groups(const DriverRoot& root, const NodeFinder& nodes, Inventory& inventory) {
  for (auto* read : {read_gds, read_gdrcopy, read_mofed, read_nvswitch, read_imex}) {
    DeviceGroup group = TRY(read(root, nodes));
    if (!group.nodes.empty() || group.major) inventory.groups.push_back(std::move(group));
  }
  return {};
}

}  // namespace berth::gpu
