// SPDX-License-Identifier: Apache-2.0
// What a node is, in the words of slurm.conf and gres.conf. Pure.
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

/// What a job asks for after --constraint, the processor's first: "x86-64-v2", "x86-64-v3",
/// "sapphirerapids", "nvidia-570", "nvidia-570.133.20", "cuda-11", "cuda-12", "cuda-12.8", "sm_90",
/// "gfx90a", "h200", "mig", "infiniband". Slurm compares words and no numbers: of what holds for
/// lower ones too (the level of x86-64, the major version of CUDA) each is there.
/// Letters, digits, '.', '_' and '-' alone. Source: slurm.conf(5) "Features"; what
/// build_feature_list() of slurmctld takes apart.
std::vector<std::string> slurm_features(const node::Profile& profile);

/// "h200" of "NVIDIA H200", "rtx_4090" of "NVIDIA GeForce RTX 4090": a part of what Slurm's own
/// detection calls it, as gres.conf(5) asks of "Type". Empty of an empty model.
std::string slurm_gpu_type(std::string_view model);

/// "gpu:h200:8"
struct SlurmGres {
  std::string type;  ///< of a slice "h100_1g.10gb"; empty: not known
  uint64_t count = 0;
  bool operator==(const SlurmGres&) const = default;
};

/// The GPUs by their types, in the order of the first of each. Of a GPU in MIG mode its slices.
std::vector<SlurmGres> slurm_gres(const node::Profile& profile);

/// A line of gres.conf.
struct SlurmDevice {
  std::string type;
  std::vector<std::string> files;  ///< several for a slice, whose nodes belong together
  std::string cores;               ///< "0-31", as Slurm numbers them; empty: any, or not known
};

/// The GPUs in the order of their PCI addresses, which Slurm numbers them in: without AutoDetect it
/// keeps the order of the lines. `cores` are those beside each NUMA node.
std::vector<SlurmDevice> slurm_devices(const gpu::Inventory& inventory, const NumaNodes& cores);

/// What a processor shares its core and its package with.
struct ProcessorPlace {
  Numbers core;
  Numbers package;
};

/// The cores of each NUMA node, numbered as Slurm does, which is hwloc's order: by package, by NUMA
/// node, by the lowest processor. Empty where all are beside one node, or where of any processor it
/// is not known. Source: gres.conf(5) "Cores".
NumaNodes number_cores(const NumaNodes& processors,
                       const std::map<unsigned, ProcessorPlace>& places);

/// What Slurm is told of a node.
struct SlurmNode {
  std::string name;
  std::vector<std::string> features;
  std::vector<SlurmGres> gres;
  std::vector<SlurmDevice> devices;
  bool synthetic = false;  ///< its GPUs were read from a tree made for tests
};

/// A line of slurm.conf: "NodeName=n1 Gres=gpu:h200:8 Feature=x86-64-v3,…".
std::string slurm_conf_line(const SlurmNode& node);

/// The lines of gres.conf, "NodeName=n1 Name=gpu Type=h200 File=/dev/nvidia0 Cores=0-31" each.
std::string gres_conf_lines(const SlurmNode& node);

}  // namespace berth::engine
