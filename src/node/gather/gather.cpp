// SPDX-License-Identifier: Apache-2.0
#include "node/gather/gather.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "node/archspec.hpp"
#include "node/check.hpp"
#include "node/cpuinfo.hpp"
#include "node/gather/parts.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/host.hpp"

namespace berth::node {
namespace {

#if defined(__x86_64__)
constexpr const char* kArchitecture = "amd64";
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
constexpr const char* kArchitecture = "ppc64le";
#elif defined(__riscv) && __riscv_xlen == 64
constexpr const char* kArchitecture = "riscv64";
#else
#error "say what images for this machine are called"
#endif

// The entry of one processor takes about three kilobytes even on large machines.
constexpr size_t kMaxCpuinfo = size_t{64} << 10;

NodeDriver driver_of(const gpu::Driver& driver) {
  NodeDriver out;
  auto version = [](const std::string& text) { return is_version(text) ? text : std::string(); };
  out.module_version = version(driver.module_version);
  out.library_version = version(driver.library_version);
  out.cuda_version = version(driver.cuda_version);
  out.glibc_needed = version(driver.glibc_needed);
  return out;
}

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxDevices = 1024;
constexpr const char* kDevices = "/sys/class/infiniband";

std::string name_of(const std::string& link) {
  return link.substr(link.rfind('/') + 1);
}

/// The fabric of an RDMA device: by driver if the driver is more specific than the link layer.
/// Source: the kernel's drivers/infiniband/hw; ABI/stable/sysfs-class-infiniband (link_layer,
/// node_type).
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

std::vector<NodeGpu> gpus_of(const gpu::Inventory& inventory) {
  std::vector<NodeGpu> out;
  for (const gpu::Gpu& gpu : inventory.gpus) {
    NodeGpu one;
    one.vendor = enum_text(gpu.vendor);
    one.model = gpu.model;
    one.uuid = gpu.uuid;
    one.compute_capability =
        compute_capability(gpu.compute_capability.value_or("")).value_or(std::string());
    one.architecture = gpu.architecture.value_or("");
    one.memory_bytes = gpu.memory_bytes;
    one.brand = gpu.brand.value_or("");
    one.mig = gpu.mig_mode;
    for (const gpu::MigDevice& slice : gpu.mig) {
      if (!slice.profile.empty()) one.mig_profiles.push_back(slice.profile);
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string start_of(const gpu::DriverRoot& root, const std::string& path, size_t max_bytes) {
  auto found = root.find_on_machine(path);
  if (!found || !S_ISREG(found->info.st_mode)) return {};
  auto file = sys::open_at(sys::cwd(), sys::fd_path(found->fd), O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return {};
  // Files of procfs and sysfs do not report their size.
  auto size = static_cast<size_t>(found->info.st_size);
  auto text = sys::read_at(*file, 0, size == 0 ? max_bytes : std::min(size, max_bytes), path);
  return text.ok() ? std::move(*text) : std::string();
}

Profile gather(const gpu::DriverRoot& root, const gpu::Inventory& inventory) {
  std::optional<gpu::DriverRoot> machine;
  if (root.synthetic()) {
    auto opened = gpu::DriverRoot::open("/");
    if (opened.ok()) machine = std::move(*opened);
  }
  // If a synthetic tree lacks `path`, that part is taken from the machine.
  auto root_with = [&](const char* path) -> const gpu::DriverRoot& {
    return machine && !root.stat_machine(path) ? *machine : root;
  };
  Profile profile;
  profile.architecture = kArchitecture;
  profile.synthetic = inventory.synthetic;
  auto name = sys::host_name();
  if (name.ok()) profile.name = *name;
  std::string cpuinfo = start_of(root_with("/proc/cpuinfo"), "/proc/cpuinfo", kMaxCpuinfo);
  profile.cpu = read_cpuinfo(cpuinfo, family_of_architecture(kArchitecture));
  const gpu::DriverRoot& kernel = root_with("/proc/sys/kernel/osrelease");
  profile.kernel = gather_kernel(kernel, !kernel.synthetic());
  profile.driver = driver_of(inventory.driver);
  profile.gpus = gpus_of(inventory);
  profile.rocm = gather_rocm(root);
  profile.fabric = gather_fabric(root);
  const gpu::DriverRoot& host = root_with("/etc/os-release");
  std::vector<scan::LoaderEntry> libraries = loader_entries(host);
  profile.libc = gather_libc(host, libraries);
  profile.mpi = mpi_of(libraries);
  return profile;
}

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
