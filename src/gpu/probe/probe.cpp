// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "gpu/inventory/cache.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/inventory/kernel.hpp"
#include "gpu/probe/devices.hpp"
#include "gpu/probe/drm.hpp"
#include "gpu/probe/files.hpp"
#include "gpu/probe/libraries.hpp"
#include "gpu/probe/nodes.hpp"
#include "gpu/probe/nvml_facts.hpp"
#include "scan/cuda_branch.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu {
namespace {

void add_slice_facts(const NvmlGpu& facts, Gpu& gpu) {
  gpu.mig_mode = facts.mig_mode || !gpu.mig.empty();
  for (MigDevice& slice : gpu.mig) {
    for (const NvmlSlice& known : facts.slices) {
      if (known.gpu_instance != slice.gpu_instance ||
          known.compute_instance != slice.compute_instance) {
        continue;
      }
      slice.uuid = known.uuid;
      slice.profile = known.profile;
      slice.memory_bytes = known.memory_bytes;
    }
  }
}

// Only indices of GPUs in `inventory`: an NVLink may lead to a GPU that this job does not have.
std::vector<uint32_t> indices_of(const std::vector<std::string>& addresses,
                                 const Inventory& inventory) {
  std::vector<uint32_t> out;
  for (const Gpu& gpu : inventory.gpus) {
    bool is_peer = std::ranges::find(addresses, gpu.pci_address) != addresses.end();
    if (gpu.vendor == Vendor::nvidia && is_peer) out.push_back(gpu.index);
  }
  return out;
}

void add_facts(const NvmlFacts& facts, Inventory& inventory) {
  if (!facts.cuda_version.empty()) {
    inventory.driver.cuda_version = facts.cuda_version;
    inventory.driver.cuda_source = "nvml";
  }
  for (Gpu& gpu : inventory.gpus) {
    for (const NvmlGpu& known : facts.gpus) {
      if (known.pci_address != gpu.pci_address) continue;
      if (!known.uuid.empty()) gpu.uuid = known.uuid;
      if (!known.model.empty()) gpu.model = known.model;
      gpu.brand = known.brand;
      gpu.compute_capability = known.compute_capability;
      gpu.memory_bytes = known.memory_bytes;
      gpu.board = known.board;
      if (!gpu.numa_node) gpu.numa_node = known.numa_node;
      gpu.nvlink_peers = indices_of(known.nvlink_peers, inventory);
      add_slice_facts(known, gpu);
    }
  }
}

void ask_nvml_for_facts(const ProbeOptions& options, Inventory& inventory, Log& log) {
  const DriverFile* library = find_nvml(inventory);
  if (library == nullptr || options.probe_program.empty()) {
    inventory.nvml = "missing";
    return;
  }
  auto facts = ask_nvml(options.probe_program, library->host_path, options.nvml_deadline);
  if (facts.ok()) {
    inventory.nvml = "ok";
    add_facts(*facts, inventory);
    return;
  }
  inventory.nvml = facts.error().kind == Kind::interrupted
                       ? fmt::format("no answer within {} ms", options.nvml_deadline.count())
                       : to_line(facts.error());
  log.warn(fmt::format("NVML: {}, using procfs and file names instead", inventory.nvml));
}

// Why no driver is found although NVIDIA's own tools show GPUs.
std::string no_driver(const DriverRoot& root) {
  std::string line = "no NVIDIA driver was found on this machine";
  if (root.stat_machine("/dev/dxg")) {
    return line + ": it is WSL2, whose GPUs (/dev/dxg) Berth does not support";
  }
  if (root.stat_machine("/dev/nvhost-ctrl") || root.stat_machine("/dev/nvmap")) {
    return line + ": it is a Jetson (Tegra), whose GPUs (/dev/nvmap) Berth does not support";
  }
  return line;
}

// Both files are the loaded module's: if they differ, one of them was replaced, for example by a
// bind mount.
std::string differing_modules(const DriverRoot& root) {
  auto text = root.read_machine("/proc/driver/nvidia/version");
  std::string proc = text.ok() && *text ? parse_module_version(**text) : std::string();
  text = root.read_machine("/sys/module/nvidia/version");
  std::string sys = text.ok() && *text ? std::string(trim(**text)) : std::string();
  if (proc.empty() || sys.empty() || proc == sys) return {};
  return fmt::format(
      "the kernel module is {} by /sys/module/nvidia/version and {} by "
      "/proc/driver/nvidia/version, "
      "taking {}",
      sys, proc, sys);
}

// Adds the warnings about versions that `berth gpu list` shows.
void judge_versions(const DriverRoot& root, Inventory& inventory) {
  const Driver& driver = inventory.driver;
  auto& problems = inventory.problems;
  if (driver.module_version.empty() && driver.library_version.empty()) {
    // A missing NVIDIA driver is a problem only if there is no other GPU either.
    if (inventory.gpus.empty()) problems.push_back(no_driver(root));
  } else if (driver.module_version.empty()) {
    problems.push_back("the NVIDIA kernel module is not loaded; try: modprobe nvidia");
  } else if (!driver.library_version.empty() && driver.library_version != driver.module_version) {
    problems.insert(
        problems.begin(),
        fmt::format(
            "driver files are {} but the kernel module is {}; try: reboot or reload the module",
            driver.library_version, driver.module_version));
  }
  if (std::string text = differing_modules(root); !text.empty()) problems.push_back(text);
  bool is_loaded = !driver.module_version.empty();
  if (is_loaded && driver.library_version.empty() && root.find("/run/nvidia/driver/usr")) {
    problems.push_back(
        "no driver files were found; try: --driver-root /run/nvidia/driver, where NVIDIA's GPU "
        "operator has them, or gpu.driver-root in the policy");
  }
}

Result<void> read_devices(const DriverRoot& root, Inventory& inventory) {
  auto nodes = TRY(NodeFinder::open(root, inventory.problems));
  TRY(read_nvidia_devices(root, nodes, inventory));
  TRY(read_drm_devices(root, nodes, inventory));
  TRY(read_groups(root, nodes, inventory));
  return read_proc_texts(root, inventory);
}

constexpr int64_t kRetrySeconds = 300;

// Opens <state>/gpu, made when missing.
Result<sys::Fd> open_cache_directory(const std::string& state_dir) {
  TRY(sys::make_directories(sys::cwd(), state_dir + "/gpu", 0700));
  return sys::open_at(sys::cwd(), state_dir + "/gpu", O_RDONLY | O_DIRECTORY);
}

Result<Inventory> probe_and_cache(const sys::Fd& directory, const DriverRoot& root,
                                  const ProbeOptions& options, Log& log) {
  // NVML may take seconds. If a driver is replaced or a slice is made meanwhile, the result matches
  // neither state, so the fingerprint is taken before and compared. The files of the inventory are
  // only known afterwards.
  std::vector<std::string> known = sentinels_of(root, {});
  std::string before = TRY(fingerprint(root, known));
  auto inventory = TRY(probe(options, log));
  std::string after = TRY(fingerprint(root, known));
  if (after != before) {
    log.debug("the GPUs or their driver have changed meanwhile, ignoring the cache");
    return inventory;
  }
  CacheHead head;
  head.format = kCacheFormat;
  head.driver_root = root.path();
  head.configured = options.configured;
  head.sentinels = sentinels_of(root, inventory);
  head.fingerprint = TRY(fingerprint(root, head.sentinels));
  bool settled = inventory.nvml == "ok" || inventory.nvml == "missing" || inventory.gpus.empty();
  if (!settled) head.retry_at = ::time(nullptr) + kRetrySeconds;
  auto written =
      sys::replace_file(directory, cache_name(root.path()), write_cached(head, inventory), 0600);
  if (!written.ok()) {
    log.warn(fmt::format("cannot cache the GPU inventory: {}, ignoring", to_line(written.error())));
  }
  return inventory;
}

}  // namespace

const DriverFile* find_nvml(const Inventory& inventory) {
  for (const DriverFile& file : inventory.files) {
    if (file.name.starts_with("libnvidia-ml.so.") && !file.elf32) return &file;
  }
  return nullptr;
}

Result<Inventory> probe(const ProbeOptions& options, Log& log) {
  auto root = TRY(DriverRoot::open(options.driver_root));
  Inventory inventory;
  inventory.synthetic = root.synthetic();
  inventory.driver_root = root.path();
  inventory.driver.module_version = TRY(module_version(root));
  TRY_CTX(read_devices(root, inventory), "cannot read the driver's devices");
  TRY_CTX(read_driver_files(root, options.configured, options.services_of_root, inventory),
          "cannot read the driver's files");
  judge_versions(root, inventory);
  inventory.driver.glibc_needed = glibc_needed(inventory);
  Driver& driver = inventory.driver;
  bool matching = driver.module_version == driver.library_version;
  // NVML of another version than the module can only fail; without a module there is nothing to
  // ask.
  if (!driver.module_version.empty() && matching) {
    ask_nvml_for_facts(options, inventory, log);
  } else {
    inventory.nvml = "missing";
  }
  if (driver.cuda_version.empty()) {
    driver.cuda_version = scan::cuda_of_branch(driver.library_version);
    if (!driver.cuda_version.empty()) driver.cuda_source = "branch";
  }
  return inventory;
}

Result<Inventory> cached_inventory(const ProbeOptions& options, Refresh refresh, Log& log) {
  if (options.state_dir.empty()) return probe(options, log);
  auto root = TRY(DriverRoot::open(options.driver_root));
  auto directory = open_cache_directory(options.state_dir);
  if (!directory.ok()) {
    log.warn(fmt::format("cannot cache the GPU inventory: {}, probing instead",
                         to_line(directory.error())));
    return probe(options, log);
  }
  if (refresh == Refresh::if_stale) {
    auto cached = TRY(find_cached(*directory, root, options.configured));
    if (cached) return std::move(*cached);
  }
  // One process probes. Processes that start at the same time wait for its result, at most for the
  // deadline of NVML. The kernel releases the lock of a dead process.
  auto lock = TRY(sys::open_at(*directory, "inventory.lock", O_RDWR | O_CREAT, 0600));
  TRY(sys::wait_lock(lock, sys::LockMode::exclusive, "inventory.lock"));
  if (refresh == Refresh::if_stale) {
    auto cached = TRY(find_cached(*directory, root, options.configured));
    if (cached) return std::move(*cached);
  }
  return probe_and_cache(*directory, root, options, log);
}

}  // namespace berth::gpu
