// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/devices.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "gpu/inventory/kernel.hpp"

namespace berth::gpu {
namespace {

constexpr std::string_view kProc = "/proc/driver/nvidia";
constexpr uint32_t kControlMinor = 255, kModesetMinor = 254;  // of the major of the GPUs
constexpr uint32_t kDefaultMajor = 195;
constexpr uint32_t kMigConfigMinor = 1, kMigMonitorMinor = 2;

std::optional<uint32_t> parse_u32(std::string_view text) {
  auto value = parse_u64(trim(text));
  if (!value || *value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

std::string value_of(const std::map<std::string, std::string>& labels, const std::string& label) {
  auto found = labels.find(label);
  return found == labels.end() ? std::string() : found->second;
}

// "gi7" with prefix "gi" → 7.
std::optional<uint32_t> numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_u32(name.substr(prefix.size()));
}

// Sorts "0000:1b:00.0" as numbers, so that domains of eight digits come last.
std::tuple<size_t, std::string> pci_order(const std::string& address) {
  return {address.find(':'), address};
}

// Reads one machine into an Inventory; the members are what several steps need.
class Devices {
 public:
  Devices(const DriverRoot& root, Inventory& inventory) : root_(root), inventory_(inventory) {}

  Result<void> read() {
    TRY(read_majors());
    TRY(read_node_table());
    TRY(read_gpus());
    read_control_nodes();
    TRY(read_params());
    return {};
  }

 private:
  Result<void> read_majors();
  Result<void> read_node_table();
  Result<void> read_gpus();
  Result<std::optional<Gpu>> read_gpu(const std::string& address);
  Result<void> read_sysfs(Gpu& gpu);
  Result<void> read_slices(Gpu& gpu);
  Result<std::optional<Node>> capability_node(const std::string& access_path);
  void read_control_nodes();
  Result<void> read_params();
  void leave_out_absent_gpus();

  std::optional<uint32_t> major_of(const std::string& name) const {
    auto found = majors_.find(name);
    if (found == majors_.end()) return std::nullopt;
    return found->second;
  }
  uint32_t gpu_major() const {
    auto found = major_of("nvidia");
    if (!found) found = major_of("nvidia-frontend");
    return found.value_or(kDefaultMajor);
  }
  Node node(const std::string& path, uint32_t node_major, uint32_t minor, uint32_t mode);
  Node existing_node(const std::string& path);
  void problem(std::string text) { inventory_.problems.push_back(std::move(text)); }

  const DriverRoot& root_;
  Inventory& inventory_;
  std::map<std::string, uint32_t> majors_;
  std::vector<Node> table_;
  std::vector<std::string> absent_;  ///< nodes of GPUs that are neither in dev/ nor in the table
};

Result<void> Devices::read_majors() {
  auto text = TRY(root_.read_machine("/proc/devices"));
  if (text) majors_ = parse_majors(*text);
  return {};
}

Result<void> Devices::read_node_table() {
  if (!root_.synthetic()) return {};
  auto text = TRY(root_.read_machine("/dev/nodes"));
  if (text) {
    table_ = TRY_CTX(parse_node_table(*text),
                     fmt::format("cannot read {}", quoted(root_.machine_path("/dev/nodes"))));
  }
  return {};
}

// The node that must have these numbers: the one in /dev when it has them, else one to be made.
Node Devices::node(const std::string& path, uint32_t node_major, uint32_t minor, uint32_t mode) {
  Node out{.path = path, .host_path = {}, .major = node_major, .minor = minor, .mode = mode};
  if (auto info = root_.stat_machine(path)) {
    if (S_ISCHR(info->st_mode) && info->st_rdev == makedev(node_major, minor)) {
      out.host_path = root_.machine_path(path);
      out.mode = info->st_mode & 07777;
      out.gid = info->st_gid;
      return out;
    }
    // A stale node of an earlier module, or one made by someone else: it would open another device.
    problem(fmt::format("{} is not the character device {}:{}, ignoring it",
                        quoted(root_.machine_path(path)), node_major, minor));
  }
  for (const Node& row : table_) {
    if (row.path == path && row.major == node_major && row.minor == minor) {
      out.mode = row.mode;
      return out;
    }
  }
  absent_.push_back(path);
  return out;
}

// A node whose numbers only it knows (DRM).
Node Devices::existing_node(const std::string& path) {
  if (auto info = root_.stat_machine(path); info && S_ISCHR(info->st_mode)) {
    return {.path = path,
            .host_path = root_.machine_path(path),
            .major = major(info->st_rdev),
            .minor = minor(info->st_rdev),
            .mode = info->st_mode & 07777,
            .gid = info->st_gid};
  }
  for (const Node& row : table_) {
    if (row.path == path) return row;
  }
  return {};
}

Result<void> Devices::read_gpus() {
  auto addresses = TRY(root_.list_machine(fmt::format("{}/gpus", kProc)));
  // nvidia-smi counts by PCI address; node minors may be in another order.
  std::sort(addresses.begin(), addresses.end(),
            [](const auto& left, const auto& right) { return pci_order(left) < pci_order(right); });
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
  gpu.pci_address = address;
  gpu.minor = *minor;
  gpu.model = value_of(labels, "Model");
  gpu.uuid = value_of(labels, "GPU UUID");
  if (gpu.uuid.find('?') != std::string::npos) gpu.uuid.clear();  // "GPU-????????-…": not known yet
  gpu.node = node(fmt::format("/dev/nvidia{}", gpu.minor), gpu_major(), gpu.minor, 0666);
  TRY(read_sysfs(gpu));
  TRY(read_slices(gpu));
  return std::optional<Gpu>(std::move(gpu));
}

// Inside a batch job or a container, procfs still lists every GPU of the machine; the nodes say
// which are ours. Where no GPU has one yet, root can make them all.
void Devices::leave_out_absent_gpus() {
  auto is_absent = [this](const Gpu& gpu) {
    return std::find(absent_.begin(), absent_.end(), gpu.node.path) != absent_.end();
  };
  auto& gpus = inventory_.gpus;
  if (std::all_of(gpus.begin(), gpus.end(), is_absent)) return;
  for (const Gpu& gpu : gpus) {
    if (is_absent(gpu)) {
      problem(fmt::format("the GPU at {} has no {} here, leaving it out", gpu.pci_address,
                          quoted(gpu.node.path)));
    }
  }
  std::erase_if(gpus, is_absent);
}

Result<void> Devices::read_sysfs(Gpu& gpu) {
  std::string base = "/sys/bus/pci/devices/" + gpu.pci_address;
  if (auto text = TRY(root_.read_machine(base + "/numa_node"))) {
    auto numa = parse_i64(trim(*text));
    if (numa && *numa >= 0) gpu.numa_node = static_cast<int>(*numa);
  }
  for (const std::string& name : TRY(root_.list_machine(base + "/drm"))) {
    if (!numbered(name, "card") && !numbered(name, "renderD")) continue;
    Node drm = existing_node("/dev/dri/" + name);
    if (!drm.path.empty()) gpu.drm_nodes.push_back(std::move(drm));
  }
  return {};
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
  std::sort(gpu.mig.begin(), gpu.mig.end(), [](const MigDevice& left, const MigDevice& right) {
    return std::tie(left.gpu_instance, left.compute_instance) <
           std::tie(right.gpu_instance, right.compute_instance);
  });
  uint32_t index = 0;
  for (MigDevice& slice : gpu.mig) slice.index = index++;
  gpu.mig_mode = !gpu.mig.empty();
  return {};
}

// The access file names the minor; the node itself may not exist before somebody asks for it.
Result<std::optional<Node>> Devices::capability_node(const std::string& access_path) {
  auto caps_major = major_of("nvidia-caps");
  auto text = TRY(root_.read_machine(access_path));
  if (!text || !caps_major) return std::optional<Node>();
  auto labels = parse_labels(*text);
  auto minor = parse_u32(value_of(labels, "DeviceFileMinor"));
  if (!minor) return std::optional<Node>();
  uint32_t mode = parse_u32(value_of(labels, "DeviceFileMode")).value_or(0444);
  std::string path = fmt::format("/dev/nvidia-caps/nvidia-cap{}", *minor);
  return std::optional<Node>(node(path, *caps_major, *minor, mode));
}

void Devices::read_control_nodes() {
  if (inventory_.driver.module_version.empty()) return;
  auto& nodes = inventory_.control_nodes;
  nodes.push_back(node("/dev/nvidiactl", gpu_major(), kControlMinor, 0666));
  if (auto uvm = major_of("nvidia-uvm")) {
    nodes.push_back(node("/dev/nvidia-uvm", *uvm, 0, 0666));
    nodes.push_back(node("/dev/nvidia-uvm-tools", *uvm, 1, 0666));
  } else {
    problem("the module nvidia-uvm is not loaded, CUDA will not start; try: modprobe nvidia-uvm");
  }
  auto modeset = major_of("nvidia-modeset");
  if (modeset) nodes.push_back(node("/dev/nvidia-modeset", *modeset, kModesetMinor, 0666));
  bool any_slice = std::any_of(inventory_.gpus.begin(), inventory_.gpus.end(),
                               [](const Gpu& gpu) { return !gpu.mig.empty(); });
  if (auto caps = major_of("nvidia-caps"); caps && any_slice) {
    for (uint32_t minor : {kMigConfigMinor, kMigMonitorMinor}) {
      inventory_.mig_control_nodes.push_back(
          node(fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor), *caps, minor,
               minor == kMigConfigMinor ? 0400 : 0444));
    }
  }
}

Result<void> Devices::read_params() {
  std::string path = std::string(kProc) + "/params";
  auto text = TRY(root_.read_machine(path));
  if (!text) return {};
  inventory_.params = std::move(*text);
  inventory_.params_path = root_.machine_path(path);
  return {};
}

}  // namespace

Result<std::vector<Node>> parse_node_table(std::string_view text) {
  std::vector<Node> out;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    auto bad = [&] {
      return make_error(Kind::corrupt,
                        fmt::format("expected 'path major minor mode', got {}", quoted(line)));
    };
    if (words.size() != 4) return bad();
    auto node_major = parse_u32(words[1]), node_minor = parse_u32(words[2]);
    uint32_t mode = 0;
    for (char c : words[3]) {
      if (c < '0' || c > '7' || mode > 0777) return bad();
      mode = mode * 8 + static_cast<uint32_t>(c - '0');
    }
    if (!node_major || !node_minor) return bad();
    std::string path(words[0]);
    if (!path.starts_with('/')) path = "/dev/" + path;
    out.push_back(
        {.path = path, .host_path = {}, .major = *node_major, .minor = *node_minor, .mode = mode});
  }
  return out;
}

Result<void> read_devices(const DriverRoot& root, Inventory& inventory) {
  return Devices(root, inventory).read();
}

}  // namespace berth::gpu
