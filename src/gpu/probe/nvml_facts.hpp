// SPDX-License-Identifier: Apache-2.0
// The output of berth-gpu-probe: facts that only NVML has.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::gpu {

struct NvmlSlice {
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
  std::string uuid;
  std::string profile;  ///< "1g.10gb"
  std::optional<uint64_t> memory_bytes;
};

struct NvmlGpu {
  std::string pci_address;  ///< as the kernel writes it
  std::string uuid;
  std::string model;
  std::optional<std::string> brand;
  std::optional<std::string> compute_capability;
  std::optional<uint64_t> memory_bytes;
  std::string board;  ///< empty for a GPU that is alone on its board
  std::optional<int> numa_node;
  std::vector<std::string> nvlink_peers;  ///< PCI addresses
  bool mig_mode = false;
  std::vector<NvmlSlice> slices;
};

struct NvmlFacts {
  std::string driver_version;
  std::string cuda_version;  ///< "12.8"
  std::vector<NvmlGpu> gpus;
};

/// "00000000:1B:00.0" → "0000:1b:00.0"; larger domains keep their digits.
std::string kernel_pci_address(std::string text);

/// Runs `program library` and parses its output.
/// Errors: interrupted (the deadline), unsupported (NVML failed), corrupt (unreadable output), and
/// those of spawn.
Result<NvmlFacts> ask_nvml(const std::string& program, const std::string& library,
                           std::chrono::milliseconds deadline);

void fields(auto& v, NvmlSlice& s) {
  v.required("gpu_instance", s.gpu_instance);
  v.required("compute_instance", s.compute_instance);
  v.optional("uuid", s.uuid);
  v.optional("profile", s.profile);
  v.optional("memory_bytes", s.memory_bytes);
}

void fields(auto& v, NvmlGpu& g) {
  v.required("pci_address", g.pci_address);
  v.optional("uuid", g.uuid);
  v.optional("model", g.model);
  v.optional("brand", g.brand);
  v.optional("compute_capability", g.compute_capability);
  v.optional("memory_bytes", g.memory_bytes);
  v.optional("board", g.board);
  v.optional("numa_node", g.numa_node);
  v.optional("nvlink_peers", g.nvlink_peers);
  v.optional("mig_mode", g.mig_mode);
  v.optional("slices", g.slices);
}

void fields(auto& v, NvmlFacts& f) {
  v.optional("driver_version", f.driver_version);
  v.optional("cuda_version", f.cuda_version);
  v.optional("gpus", f.gpus);
}

}  // namespace berth::gpu
