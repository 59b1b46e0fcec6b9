// SPDX-License-Identifier: Apache-2.0
// What berth-gpu-probe --use prints: how busy the GPUs are at this moment, and with whom.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::gpu {

/// Bytes of a GPU's or a slice's memory.
struct NvmlMemory {
  uint64_t used = 0;
  uint64_t total = 0;
};

struct NvmlSliceUse {
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
  std::optional<NvmlMemory> memory;
};

/// A process that has the GPU open, of the machine's pid namespace.
struct NvmlProcess {
  int64_t pid = 0;
  std::optional<uint64_t> used_bytes;
  std::optional<uint32_t> gpu_instance;  ///< with the other: of a slice
  std::optional<uint32_t> compute_instance;
  bool graphics = false;  ///< it draws and does not compute
};

struct NvmlGpuUse {
  std::string pci_address;               ///< as the kernel writes it
  std::optional<uint32_t> busy_percent;  ///< none for a GPU in MIG mode
  std::optional<NvmlMemory> memory;
  std::vector<NvmlSliceUse> slices;
  std::optional<uint32_t> celsius{};
  std::optional<uint32_t> milliwatts{};
  std::optional<std::vector<NvmlProcess>> processes{};  ///< each once for each slice
};

struct NvmlUse {
  std::vector<NvmlGpuUse> gpus;
};

/// Runs `program --use library` and reads what it prints.  Errors: as ask_nvml().
Result<NvmlUse> ask_nvml_use(const std::string& program, const std::string& library,
                             std::chrono::milliseconds deadline);

template <class V>
void fields(V& v, NvmlMemory& m) {
  v.required("used", m.used);
  v.required("total", m.total);
}

template <class V>
void fields(V& v, NvmlSliceUse& s) {
  v.required("gpu_instance", s.gpu_instance);
  v.required("compute_instance", s.compute_instance);
  v.optional("memory", s.memory);
}

template <class V>
void fields(V& v, NvmlProcess& p) {
  v.required("pid", p.pid);
  v.optional("used_bytes", p.used_bytes);
  v.optional("gpu_instance", p.gpu_instance);
  v.optional("compute_instance", p.compute_instance);
  v.optional("graphics", p.graphics);
}

template <class V>
void fields(V& v, NvmlGpuUse& g) {
  v.required("pci_address", g.pci_address);
  v.optional("busy_percent", g.busy_percent);
  v.optional("memory", g.memory);
  v.optional("celsius", g.celsius);
  v.optional("milliwatts", g.milliwatts);
  v.optional("processes", g.processes);
  v.optional("slices", g.slices);
}

template <class V>
void fields(V& v, NvmlUse& u) {
  v.optional("gpus", u.gpus);
}

}  // namespace berth::gpu
