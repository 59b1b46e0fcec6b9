// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "doctor/gather.hpp"
#include "gpu/inventory/kernel.hpp"
#include "gpu/probe/libraries.hpp"
#include "gpu/probe/probe.hpp"
#include "policy/policy.hpp"

namespace berth::doctor {
namespace {

constexpr const char* kToolkitConfig = "/etc/nvidia-container-runtime/config.toml";

std::string read_text(const gpu::DriverRoot& root, const std::string& path) {
  auto text = root.read_machine(path);
  return text.ok() ? text->value_or("") : "";
}

void probe_driver(const Inputs& inputs, GpuFacts& facts) {
  gpu::ProbeOptions options;
  options.driver_root = inputs.driver_root;
  options.probe_program = inputs.libexec + "/berth-gpu-probe";
  // Another check reports an unreadable policy.
  auto policy = policy::read_compiled(inputs.config_dir);
  if (policy.ok()) {
    const policy::Gpu& site = policy->policy.gpu;
    options.configured = {site.library_directories, site.files};
    facts.searched = site.library_directories;
  }
  NullLog log;  // the warnings of the probe are in the inventory
  auto begin = std::chrono::steady_clock::now();
  auto inventory = gpu::probe(options, log);
  auto took = std::chrono::steady_clock::now() - begin;
  facts.probe_time = std::chrono::duration_cast<std::chrono::milliseconds>(took);
  if (inventory.ok()) facts.inventory = std::move(*inventory);
  if (!inventory.ok()) facts.error = inventory.error();
}

std::string kernel_driver_of(const gpu::DriverRoot& root, const std::string& address) {
  for (const char* driver : {"nvidia", "nouveau", "vfio-pci", "amdgpu", "i915", "xe"}) {
    std::string path = "/sys/bus/pci/drivers/" + std::string(driver) + "/" + address;
    if (root.stat_machine(path)) return driver;
  }
  return {};
}

// Display controllers of the three vendors: classes 0x0300 (VGA) and 0x0302 (3D).
void gather_pci(const gpu::DriverRoot& root, GpuFacts& facts) {
  std::vector<std::string> listed = names_in(root, "/proc/driver/nvidia/gpus");
  for (const std::string& address : names_in(root, "/sys/bus/pci/devices")) {
    std::string base = "/sys/bus/pci/devices/" + address;
    std::string kind = read_text(root, base + "/class");
    if (!kind.starts_with("0x0300") && !kind.starts_with("0x0302")) continue;
    PciGpu gpu;
    gpu.address = address;
    gpu.vendor = trim(read_text(root, base + "/vendor"));
    if (gpu.vendor.starts_with("0x")) gpu.vendor.erase(0, 2);
    if (gpu.vendor != "10de" && gpu.vendor != "1002") continue;  // others are not compute GPUs
    gpu.driver = kernel_driver_of(root, address);
    gpu.listed = std::ranges::find(listed, address) != listed.end();
    facts.pci.push_back(std::move(gpu));
  }
}

void gather_services(const gpu::DriverRoot& root, GpuFacts& facts) {
  auto exists = [&](const char* path) { return root.stat_machine(path).has_value(); };
  facts.nouveau = exists("/sys/module/nouveau");
  facts.listed = exists("/proc/driver/nvidia");
  facts.listed_version = gpu::parse_module_version(read_text(root, "/proc/driver/nvidia/version"));
  facts.persistence_daemon = exists("/run/nvidia-persistenced/socket");
  facts.fabric_manager = exists("/run/nvidia-fabricmanager/socket");
  facts.nvswitch = exists("/dev/nvidia-nvswitchctl") ||
                   !names_in(root, "/proc/driver/nvidia-nvswitch/devices").empty();
}

void gather_files(const gpu::DriverRoot& root, GpuFacts& facts) {
  auto searched = gpu::searched_directories(root);
  if (searched.ok())
    std::move(searched->begin(), searched->end(), std::back_inserter(facts.searched));
  for (const gpu::DriverFile& file : facts.inventory.files) {
    if (!file.name.starts_with("libcuda.so.") || file.elf32) continue;
    auto there = sys::file_system_of(file.host_path);
    if (there.ok()) facts.libraries = *there;
    break;
  }
  auto dev = sys::file_system_of(root.machine_path("/dev"));
  if (dev.ok() && !root.synthetic()) facts.dev = *dev;
}

void gather_toolkit(const gpu::DriverRoot& root, GpuFacts& facts) {
  std::string text = read_text(root, kToolkitConfig);
  if (!text.empty()) {
    facts.toolkit_config = root.machine_path(kToolkitConfig);
    auto keys = changed_toolkit_keys(text, facts.toolkit_config);
    if (keys.ok()) facts.toolkit_keys = std::move(*keys);
    if (!keys.ok()) facts.toolkit_error = keys.error();
  }
  for (const char* directory : {"/usr/share/containers/oci/hooks.d", "/etc/containers/oci/hooks.d",
                                "/usr/libexec/oci/hooks.d"}) {
    for (const std::string& name : names_in(root, directory)) {
      std::string path = std::string(directory) + "/" + name;
      if (!name.ends_with(".json")) continue;
      bool nvidia = read_text(root, path).find("nvidia-container") != std::string::npos;
      if (nvidia) facts.hooks.push_back(root.machine_path(path));
    }
  }
  std::string boolean = read_text(root, "/sys/fs/selinux/booleans/container_use_devices");
  facts.container_use_devices =
      boolean.empty() ? !root.stat_machine("/sys/fs/selinux/enforce") : boolean.starts_with('1');
}

}  // namespace

GpuFacts gather_gpu(const Inputs& inputs) {
  GpuFacts facts;
  facts.driver_root = inputs.driver_root;
  auto root = gpu::DriverRoot::open(inputs.driver_root);
  if (!root.ok()) {
    facts.error = root.error();
    return facts;
  }
  facts.synthetic = root->synthetic();
  probe_driver(inputs, facts);
  facts.majors = gpu::parse_majors(read_text(*root, "/proc/devices"));
  gather_pci(*root, facts);
  gather_services(*root, facts);
  gather_files(*root, facts);
  facts.nodes = gather_nodes(*root, facts.inventory);
  facts.cdi = gather_cdi_files(*root, inputs.cdi_directories);
  gather_toolkit(*root, facts);
  return facts;
}

}  // namespace berth::doctor
