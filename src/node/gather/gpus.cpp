// SPDX-License-Identifier: Apache-2.0
#include "node/check.hpp"
#include "node/gather/parts.hpp"

namespace berth::node {

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

}  // namespace berth::node
