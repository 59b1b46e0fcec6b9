// SPDX-License-Identifier: Apache-2.0
#include "doctor/preflight.hpp"

#include <algorithm>
#include <initializer_list>

#include "doctor/checks.hpp"

namespace berth::doctor {
namespace {

constexpr uint64_t kUnlimited = ~uint64_t{0};
// NCCL needs about 10 MB of shared memory for each pair of processes on a node; data loaders need
// one batch per worker.
constexpr uint64_t kEnoughShm = uint64_t{1} << 30;

bool has_fabric(const PreflightFacts& facts, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return std::ranges::find(facts.fabric, name) != facts.fabric.end();
  });
}

bool has_verbs(const PreflightFacts& facts) {
  return !facts.verbs.empty() || has_fabric(facts, {"efa", "infiniband", "iwarp", "opa", "roce"});
}

Finding memlock(const PreflightFacts& facts) {
  if (!has_verbs(facts)) return not_applicable("there is no RDMA device that needs locked memory");
  if (!facts.memlock) return not_applicable("/proc/self/limits cannot be read");
  if (*facts.memlock == kUnlimited) return ok("memory may be locked without limit");
  return warning("only " + human_bytes(*facts.memlock) +
                     " of memory may be locked: ibv_reg_mr() fails, and NCCL and MPI with it",
                 "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf, and LimitMEMLOCK=infinity "
                 "for slurmd");
}

Finding shared_memory(const PreflightFacts& facts) {
  if (!facts.shm_bytes) {
    return warning("nothing is mounted on /dev/shm: processes of one node cannot share memory",
                   "mount -t tmpfs shm /dev/shm, as root");
  }
  std::string size = human_bytes(*facts.shm_bytes) + " are free in /dev/shm";
  if (*facts.shm_bytes >= kEnoughShm) return ok(size);
  return warning("only " + size,
                 "--shm-size 8g where the container has its own; or mount -o "
                 "remount,size=50% /dev/shm, as root");
}

Finding verbs(const PreflightFacts& facts) {
  if (!has_verbs(facts)) return not_applicable("there is no RDMA device");
  if (facts.verbs.empty()) {
    return warning("/sys has " + join(facts.fabric, ", ") +
                       ", /dev/infiniband has no device: NCCL and MPI fall back to TCP",
                   "modprobe ib_uverbs, as root");
  }
  if (facts.closed.empty()) return ok(counted(facts.verbs.size(), "device", "devices"));
  return with(warning("this user may not open " + quote(facts.closed.front()),
                      "chmod 666 " + facts.closed.front() +
                          ", by a udev rule; or the device cgroup of this job denies it"),
              facts.closed);
}

Finding network_plugin(const PreflightFacts& facts) {
  if (!facts.plugins.empty()) {
    return with(ok(quote(facts.plugins.front()) + " is there for NCCL"), facts.plugins);
  }
  if (!has_fabric(facts, {"efa", "slingshot"})) {
    return not_applicable("NCCL supports the network of this node itself");
  }
  return warning("NCCL itself does not support " + join(facts.fabric, ", ") +
                     ", and no libnccl-net is installed: it falls back to TCP",
                 "install aws-ofi-nccl here or in the image");
}

Finding topology_file(const PreflightFacts& facts) {
  if (facts.topology.empty()) return not_applicable("NCCL_TOPO_FILE is not set");
  if (facts.topology_there) return ok(quote(facts.topology));
  return warning(
      "NCCL_TOPO_FILE=" + facts.topology + " does not exist: NCCL uses its own detection",
      "unset NCCL_TOPO_FILE, or create the file");
}

Finding xpmem(const PreflightFacts& facts) {
  if (facts.xpmem_node) return ok("/dev/xpmem");
  if (!facts.xpmem_module) return not_applicable("the module xpmem is not loaded");
  return warning("the module xpmem is loaded, /dev/xpmem is missing",
                 "udevadm trigger, or modprobe it again, as root");
}

Finding gdrcopy(const PreflightFacts& facts) {
  if (facts.gdr_node) return ok("/dev/gdrdrv");
  if (facts.gdr_module) {
    return warning("the module gdrdrv is loaded, /dev/gdrdrv is missing",
                   "mknod /dev/gdrdrv c MAJOR 0, MAJOR by /proc/devices, as root");
  }
  if (!facts.gpus || !has_fabric(facts, {"infiniband", "roce"})) {
    return not_applicable("there are no GPUs beside InfiniBand or RoCE");
  }
  return warning("no /dev/gdrdrv: small messages from GPU memory are slower",
                 "install gdrcopy and load gdrdrv, as root");
}

Finding pmix(const PreflightFacts& facts) {
  if (!facts.slurm) return not_applicable("Slurm is not installed here");
  if (!facts.pmix.empty()) return ok(quote(facts.pmix.front()));
  return warning("Slurm has no mpi_pmix here: srun --mpi=pmix fails, MPI programs start alone",
                 "Slurm built with PMIx; or --mpi=pmi2 with MPICH");
}

}  // namespace

std::optional<uint64_t> parse_memlock(std::string_view limits) {
  constexpr std::string_view kName = "Max locked memory";
  for (std::string_view line : split(limits, '\n')) {
    if (!line.starts_with(kName)) continue;
    auto words = split_blank(line.substr(kName.size()));
    if (words.empty()) return std::nullopt;
    if (words[0] == "unlimited") return kUnlimited;
    return parse_u64(words[0]);
  }
  return std::nullopt;
}

std::vector<Answer> judge_preflight(const PreflightFacts& facts) {
  return {{"node.memlock", memlock(facts)},
          {"node.shared-memory", shared_memory(facts)},
          {"node.rdma-devices", verbs(facts)},
          {"node.network-plugin", network_plugin(facts)},
          {"node.topology-file", topology_file(facts)},
          {"node.xpmem", xpmem(facts)},
          {"node.gdrcopy", gdrcopy(facts)},
          {"node.pmix", pmix(facts)}};
}

}  // namespace berth::doctor
