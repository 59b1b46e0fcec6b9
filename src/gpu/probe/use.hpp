// SPDX-License-Identifier: Apache-2.0
// The present load of the GPUs and their processes, from any source. The tables at the end define
// the output of berth-gpu-probe --use, which reads NVML.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::gpu {

/// Bytes of a GPU's or a slice's memory.
struct MemoryUse {
  uint64_t used = 0;
  uint64_t total = 0;
};

struct SliceUse {
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
  std::optional<MemoryUse> memory;
};

/// A process that has the GPU open; its pid is of the machine's pid namespace.
struct ProcessUse {
  int64_t pid = 0;
  std::optional<uint64_t> used_bytes;
  std::optional<uint32_t> gpu_instance;  ///< together with compute_instance: the slice that it uses
  std::optional<uint32_t> compute_instance;
  bool graphics = false;  ///< it uses the GPU for graphics only
};

/// The load of one GPU. Unknown values are none.
struct Use {
  std::string pci_address;               ///< as the kernel writes it
  std::optional<uint32_t> busy_percent;  ///< none for a GPU in MIG mode
  std::optional<MemoryUse> memory;
  std::vector<SliceUse> slices;
  std::optional<uint32_t> celsius{};
  std::optional<uint32_t> milliwatts{};
  std::optional<std::vector<ProcessUse>> processes{};  ///< without duplicates per slice
  std::string compute_mode{};                          ///< one of the modes below; empty: unknown
  std::string id{};                                    ///< "GPU-…"; empty: unknown
};

/// How many processes may compute on a GPU: "default" any number, "exclusive-process" one,
/// "prohibited" none.
inline constexpr const char* kDefaultMode = "default";
inline constexpr const char* kExclusiveProcess = "exclusive-process";
inline constexpr const char* kProhibited = "prohibited";

struct Uses {
  std::vector<Use> gpus;
};

/// Runs `program --use library` and parses its output. Errors: those of ask_nvml().
Result<Uses> ask_nvml_use(const std::string& program, const std::string& library,
                          std::chrono::milliseconds deadline);

/// Runs `program --compute-mode GPU,… mode library`; requires root. GPUs are named by id, "GPU-…".
/// Errors: unsupported (the driver refuses, or its library cannot be used).
Result<void> set_compute_mode(const std::string& program, const std::string& library,
                              const std::vector<std::string>& gpus, const std::string& mode,
                              std::chrono::milliseconds deadline);

void fields(auto& v, MemoryUse& m) {
  v.required("used", m.used);
  v.required("total", m.total);
}

void fields(auto& v, SliceUse& s) {
  v.required("gpu_instance", s.gpu_instance);
  v.required("compute_instance", s.compute_instance);
  v.optional("memory", s.memory);
}

void fields(auto& v, ProcessUse& p) {
  v.required("pid", p.pid);
  v.optional("used_bytes", p.used_bytes);
  v.optional("gpu_instance", p.gpu_instance);
  v.optional("compute_instance", p.compute_instance);
  v.optional("graphics", p.graphics);
}

void fields(auto& v, Use& g) {
  v.required("pci_address", g.pci_address);
  v.optional("busy_percent", g.busy_percent);
  v.optional("memory", g.memory);
  v.optional("celsius", g.celsius);
  v.optional("milliwatts", g.milliwatts);
  v.optional("processes", g.processes);
  v.optional("slices", g.slices);
  v.optional("compute_mode", g.compute_mode);
  v.optional("id", g.id);
}

void fields(auto& v, Uses& u) {
  v.optional("gpus", u.gpus);
}

}  // namespace berth::gpu
