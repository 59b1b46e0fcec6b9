// SPDX-License-Identifier: Apache-2.0
// The description of a node for slurm.conf and gres.conf. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gpu/placement.hpp"
#include "gpu/inventory/inventory.hpp"
#include "node/profile.hpp"

namespace berth::engine {

/// The features for a job's --constraint, those of the processor first: "x86-64-v2", "x86-64-v3",
/// "sapphirerapids", "nvidia-570", "nvidia-570.133.20", "cuda-11", "cuda-12", "cuda-12.8", "sm_90",
/// "gfx90a", "h200", "mig", "infiniband". Slurm compares strings, not numbers: where a value
/// implies lower values (the level of x86-64, the major version of CUDA), all of them are listed.
/// Features have only letters, digits, '.', '_' and '-'. Source: slurm.conf(5) "Features";
/// build_feature_list() of slurmctld.
std::vector<std::string> slurm_features(const node::Profile& profile);

/// "NVIDIA H200" → "h200", "NVIDIA GeForce RTX 4090" → "rtx_4090": a substring of the name that
/// Slurm itself detects, as gres.conf(5) requires for "Type". Empty for an empty model.
std::string slurm_gpu_type(std::string_view model);

/// "gpu:h200:8"
struct SlurmGres {
  std::string type;  ///< of a MIG slice: "h100_1g.10gb"; empty: unknown
  uint64_t count = 0;
  bool operator==(const SlurmGres&) const = default;
};

/// The GPUs grouped by type, ordered by the first GPU of each type. A GPU in MIG mode counts as its
/// slices.
std::vector<SlurmGres> slurm_gres(const node::Profile& profile);

/// A line of gres.conf.
struct SlurmDevice {
  std::string type;
  std::vector<std::string> files;  ///< several for a MIG slice, which has several device nodes
  std::string cores;               ///< "0-31", numbered as by Slurm; empty: any, or unknown
};

/// The GPUs in the order of their PCI addresses, as Slurm numbers them: without AutoDetect Slurm
/// keeps the order of the lines. `cores`: the cores of each NUMA node.
std::vector<SlurmDevice> slurm_devices(const gpu::Inventory& inventory, const NumaNodes& cores);

/// The processors that share a core and a package with one processor.
struct ProcessorPlace {
  Numbers core;
  Numbers package;
};

/// The cores of each NUMA node, numbered as by Slurm, in hwloc's order: by package, then by NUMA
/// node, then by the lowest processor. Empty if all cores belong to one node, or if a processor's
/// place is unknown. Source: gres.conf(5) "Cores".
NumaNodes number_cores(const NumaNodes& processors,
                       const std::map<unsigned, ProcessorPlace>& places);

/// The description of a node for Slurm.
struct SlurmNode {
  std::string name;
  std::vector<std::string> features;
  std::vector<SlurmGres> gres;
  std::vector<SlurmDevice> devices;
  bool synthetic = false;  ///< the GPUs come from a driver tree made for tests
};

/// A line of slurm.conf: "NodeName=n1 Gres=gpu:h200:8 Feature=x86-64-v3,…".
std::string slurm_conf_line(const SlurmNode& node);

/// The lines of gres.conf, "NodeName=n1 Name=gpu Type=h200 File=/dev/nvidia0 Cores=0-31" each.
std::string gres_conf_lines(const SlurmNode& node);

}  // namespace berth::engine
