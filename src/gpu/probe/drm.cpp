// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/drm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "gpu/inventory/kernel.hpp"

namespace berth::gpu {
namespace {

constexpr uint64_t kXgmi = 11;  // HSA_IOLINK_TYPE_XGMI

std::string pci_directory(const std::string& address) {
  return "/sys/bus/pci/devices/" + address;
}

// "0x1002" → "1002"; empty for other strings.
std::string pci_id(std::string_view text) {
  if (!text.starts_with("0x") || text.size() != 6) return {};
  return std::string(text.substr(2));
}

bool is_pci_address(std::string_view name) {
  auto parts = split(name, ':');
  return parts.size() == 3 && parts[0].size() >= 4 && parts[1].size() == 2 &&
         parts[2].size() == 4 &&
         name.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

// The DRM nodes of one device, from the device's directory drm/ in sysfs.
std::vector<Node> nodes_below(const DriverRoot& root, const NodeFinder& nodes,
                              const std::string& directory) {
  std::vector<Node> out;
  for (const std::string& name : names_in(root, directory)) {
    if (!numbered(name, "card") && !numbered(name, "renderD")) continue;
    if (auto node = nodes.find("/dev/dri/" + name)) out.push_back(std::move(*node));
  }
  return out;
}

bool is_render_node(const Node& node) {
  return node.path.starts_with("/dev/dri/renderD");
}

// The GPUs with a render node, vendor by vendor.
class DrmDevices {
 public:
  DrmDevices(const DriverRoot& root, const NodeFinder& nodes, Inventory& inventory)
      : root_(root), nodes_(nodes), inventory_(inventory) {}

  Result<void> read() {
    read_kfd();
    TRY(read_gpus());
    add_partitions();
    add_links();
    if (!amd_.empty()) add_kfd();
    append(amd_);
    append(intel_);
    return {};
  }

 private:
  void read_kfd();
  Result<void> read_gpus();
  void read_gpu(const std::string& address);
  void add_amd_facts(const std::string& base, Gpu& gpu) const;
  void add_partitions();
  void add_links();
  void add_kfd();
  void append(std::vector<Gpu>& gpus);
  void problem(std::string text) { inventory_.problems.push_back(std::move(text)); }
  Gpu* find_amd(const std::string& address);

  const DriverRoot& root_;
  const NodeFinder& nodes_;
  Inventory& inventory_;
  std::map<uint32_t, KfdNode> kfd_;  ///< by number of the node in the topology
  std::vector<Gpu> amd_, intel_;
};

void DrmDevices::read_kfd() {
  for (const std::string& name : names_in(root_, std::string(kKfdNodes))) {
    auto number = parse_u32(name);
    if (!number) continue;
    auto node = parse_kfd_node(text_of(root_, fmt::format("{}/{}/properties", kKfdNodes, name)));
    if (node) kfd_.emplace(*number, std::move(*node));
  }
}

Result<void> DrmDevices::read_gpus() {
  std::set<std::string> addresses;
  for (const std::string& name : TRY(root_.list_machine("/sys/class/drm"))) {
    if (!numbered(name, "renderD")) continue;
    std::string target = root_.link_machine("/sys/class/drm/" + name + "/device");
    std::string address = target.substr(target.rfind('/') + 1);
    if (is_pci_address(address)) addresses.insert(address);
  }
  std::vector<std::string> sorted(addresses.begin(), addresses.end());
  std::ranges::sort(sorted, pci_before);
  for (const std::string& address : sorted) read_gpu(address);
  return {};
}

void DrmDevices::read_gpu(const std::string& address) {
  const std::string base = pci_directory(address);
  std::string driver = root_.link_machine(base + "/driver");
  driver = driver.substr(driver.rfind('/') + 1);
  bool is_amd = driver == "amdgpu", is_intel = driver == "i915" || driver == "xe";
  if (!is_amd && !is_intel) return;
  std::string vendor = pci_id(text_of(root_, base + "/vendor"));
  if (vendor != (is_amd ? "1002" : "8086")) return;
  Gpu gpu;
  gpu.vendor = is_amd ? Vendor::amd : Vendor::intel;
  gpu.kernel_driver = driver;
  gpu.pci_address = address;
  read_pci_facts(root_, nodes_, gpu);
  auto render = std::ranges::find_if(gpu.drm_nodes, is_render_node);
  if (render == gpu.drm_nodes.end()) {
    problem(fmt::format("the GPU at {} has no render node in '/dev/dri' here, leaving it out",
                        address));
    return;
  }
  gpu.node = *render;
  gpu.minor = gpu.node.minor;
  gpu.model = fmt::format("{} GPU {}:{}", is_amd ? "AMD" : "Intel", vendor,
                          pci_id(text_of(root_, base + "/device")));
  if (is_amd) add_amd_facts(base, gpu);
  (is_amd ? amd_ : intel_).push_back(std::move(gpu));
}

void DrmDevices::add_amd_facts(const std::string& base, Gpu& gpu) const {
  if (auto name = text_of(root_, base + "/product_name"); !name.empty()) gpu.model = name;
  gpu.memory_bytes = parse_u64(text_of(root_, base + "/mem_info_vram_total"));
  gpu.compute_partition = text_of(root_, base + "/current_compute_partition");
  gpu.memory_partition = text_of(root_, base + "/current_memory_partition");
  // The serial number belongs to the board, not to the chip: both GPUs of an MI250X have the same
  // one.
  gpu.board = text_of(root_, base + "/serial_number");
  for (const auto& [number, node] : kfd_) {
    if (node.pci_address != gpu.pci_address || node.partition != 0) continue;
    gpu.architecture = node.architecture;
    if (node.unique_id != 0) gpu.uuid = fmt::format("GPU-{:016x}", node.unique_id);
  }
}

// An AMD GPU in a mode other than SPX is several KFD nodes at one PCI address, each with nodes in
// /dev/dri. The first KFD node has the DRM nodes of the PCI device; the others have those of
// platform devices amdgpu_xcp_<N>.
void DrmDevices::add_partitions() {
  for (Gpu& gpu : amd_) {
    std::map<uint32_t, uint32_t> minors;  // minors of the render nodes, by partition
    for (const auto& [number, node] : kfd_) {
      if (node.pci_address == gpu.pci_address) minors.emplace(node.partition, node.render_minor);
    }
    if (minors.size() < 2) continue;
    for (const auto& [index, minor] : minors) {
      Partition partition;
      partition.index = index;
      partition.nodes =
          nodes_below(root_, nodes_, fmt::format("/sys/class/drm/renderD{}/device/drm", minor));
      if (std::ranges::any_of(partition.nodes, is_render_node)) {
        gpu.partitions.push_back(std::move(partition));
      } else {
        problem(fmt::format("partition {} of the GPU at {} has no render node here, leaving it out",
                            index, gpu.pci_address));
      }
    }
  }
}

Gpu* DrmDevices::find_amd(const std::string& address) {
  auto found = std::ranges::find(amd_, address, &Gpu::pci_address);
  return found == amd_.end() ? nullptr : &*found;
}

void DrmDevices::add_links() {
  for (const auto& [number, node] : kfd_) {
    Gpu* gpu = find_amd(node.pci_address);
    if (gpu == nullptr) continue;
    const std::string base = fmt::format("{}/{}/io_links", kKfdNodes, number);
    std::set<uint32_t> peers(gpu->nvlink_peers.begin(), gpu->nvlink_peers.end());
    for (const std::string& name : names_in(root_, base)) {
      auto link = parse_properties(text_of(root_, base + "/" + name + "/properties"));
      auto far = kfd_.find(static_cast<uint32_t>(link["node_to"]));
      if (link["type"] != kXgmi || far == kfd_.end()) continue;
      Gpu* peer = find_amd(far->second.pci_address);
      if (peer != nullptr && peer != gpu) peers.insert(static_cast<uint32_t>(peer - amd_.data()));
    }
    gpu->nvlink_peers.assign(peers.begin(), peers.end());
  }
}

void DrmDevices::add_kfd() {
  if (auto node = nodes_.find("/dev/kfd")) {
    inventory_.amd_control_nodes.push_back(std::move(*node));
  } else {
    problem("there is no '/dev/kfd', ROCm will not start; try: modprobe amdgpu");
  }
}

void DrmDevices::append(std::vector<Gpu>& gpus) {
  uint32_t index = 0;
  for (Gpu& gpu : gpus) {
    gpu.index = index++;
    auto same_board = [&](const Gpu& other) { return other.board == gpu.board; };
    if (std::ranges::count_if(gpus, same_board) < 2) gpu.board.clear();
  }
  inventory_.gpus.insert(inventory_.gpus.end(), gpus.begin(), gpus.end());
}

}  // namespace

bool pci_before(const std::string& left, const std::string& right) {
  return std::tuple(left.find(':'), left) < std::tuple(right.find(':'), right);
}

void read_pci_facts(const DriverRoot& root, const NodeFinder& nodes, Gpu& gpu) {
  const std::string base = pci_directory(gpu.pci_address);
  auto numa = parse_i64(text_of(root, base + "/numa_node"));
  if (numa && *numa >= 0) gpu.numa_node = static_cast<int>(*numa);
  gpu.drm_nodes = nodes_below(root, nodes, base + "/drm");
  for (const Node& node : gpu.drm_nodes) {
    gpu.drm_links.push_back({fmt::format("/dev/dri/by-path/pci-{}-{}", gpu.pci_address,
                                         is_render_node(node) ? "render" : "card"),
                             ".." + node.path.substr(node.path.rfind('/'))});
  }
}

Result<void> read_drm_devices(const DriverRoot& root, const NodeFinder& nodes,
                              Inventory& inventory) {
  return DrmDevices(root, nodes, inventory).read();
}

}  // namespace berth::gpu
