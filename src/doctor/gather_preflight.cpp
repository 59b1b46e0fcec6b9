// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>

#include "doctor/preflight.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"

namespace berth::doctor {
namespace {

constexpr const char* kVerbs = "/dev/infiniband";
constexpr size_t kLimitsFile = 16384;
// The directories of NCCL's network plugins in packages of distributions, AWS and HPE.
constexpr std::array kLibraries = {
    "/usr/lib",       "/usr/lib64",      "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib", "/opt/cray/lib64", "/opt/amazon/ofi-nccl/lib",  "/opt/aws-ofi-nccl/lib"};
// The default PluginDir of Slurm, and that of Debian's packages.
constexpr std::array kSlurm = {"/usr/lib64/slurm",
                               "/usr/lib/slurm",
                               "/usr/local/lib/slurm",
                               "/opt/slurm/lib/slurm",
                               "/usr/lib/x86_64-linux-gnu/slurm-wlm",
                               "/usr/lib/aarch64-linux-gnu/slurm-wlm"};

template <class Directories, class Wanted>
std::vector<std::string> find_files(const gpu::DriverRoot& root, const Directories& directories,
                                    Wanted wanted) {
  std::vector<std::string> found;
  for (const char* directory : directories) {
    for (const std::string& name : gpu::names_in(root, directory)) {
      if (wanted(name)) found.push_back(std::string(directory) + "/" + name);
    }
  }
  return found;
}

bool is_network_plugin(const std::string& name) {
  return (name.starts_with("libnccl-net") || name.starts_with("librccl-net")) &&
         name.find(".so") != std::string::npos;
}

void gather_verbs(const gpu::DriverRoot& root, PreflightFacts& facts) {
  for (const std::string& name : gpu::names_in(root, kVerbs)) {
    if (!name.starts_with("uverbs")) continue;
    std::string path = std::string(kVerbs) + "/" + name;
    bool usable = sys::check_access(sys::cwd(), root.machine_path(path), R_OK | W_OK).ok();
    facts.verbs.push_back(path);
    if (!usable) facts.closed.push_back(std::move(path));
  }
}

void gather_limits(PreflightFacts& facts) {
  auto limits = sys::read_file_if_exists(sys::cwd(), "/proc/self/limits", kLimitsFile);
  if (limits.ok() && *limits) facts.memlock = parse_memlock(**limits);
  auto shm = sys::file_system_of("/dev/shm");
  if (shm.ok()) facts.shm_bytes = shm->free_bytes;
}

}  // namespace

PreflightFacts gather_preflight(const std::string& driver_root, std::vector<std::string> fabric,
                                bool gpus, const std::string& topology) {
  PreflightFacts facts;
  facts.fabric = std::move(fabric);
  facts.gpus = gpus;
  facts.topology = topology;
  gather_limits(facts);
  auto root = gpu::DriverRoot::open(driver_root);
  if (!root.ok()) return facts;
  auto exists = [&](const std::string& path) { return root->stat_machine(path).has_value(); };
  facts.topology_there = !topology.empty() && exists(topology);
  facts.xpmem_module = exists("/sys/module/xpmem");
  facts.xpmem_node = exists("/dev/xpmem");
  facts.gdr_module = exists("/sys/module/gdrdrv");
  facts.gdr_node = exists("/dev/gdrdrv");
  gather_verbs(*root, facts);
  facts.plugins = find_files(*root, kLibraries, is_network_plugin);
  auto any = [](const std::string& name) { return name.ends_with(".so"); };
  facts.slurm = !find_files(*root, kSlurm, any).empty();
  facts.pmix = find_files(*root, kSlurm, [](const std::string& name) {
    return name.starts_with("mpi_pmix") && name.ends_with(".so");
  });
  return facts;
}

}  // namespace berth::doctor
