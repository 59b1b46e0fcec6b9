// SPDX-License-Identifier: Apache-2.0
// Which code runs on which GPU, and which driver a CUDA version needs.
// Source: NVIDIA's CUDA compatibility guide; the CUDA C++ programming guide, "compute capability";
// release notes of the toolkits (minimum drivers); the PTX ISA, "release notes".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.hpp"
#include "node/profile.hpp"

namespace berth::match {

/// How well code fits a GPU; a greater number is better.
enum class CodeClass {
  none,    ///< none of it runs
  jit,     ///< PTX, which the driver compiles at the first start
  sass,    ///< SASS for the same major version
  family,  ///< "100f"; AMD: "gfx11-generic"
  exact,   ///< "90a" on 9.0; AMD: the same architecture
};

struct CodeFit {
  CodeClass code_class = CodeClass::none;
  uint32_t minor = 0;      ///< of SASS: the nearer to the GPU's minor version the better
  bool newer_ptx = false;  ///< there is PTX for the GPU, but too new for the driver
  const facts::GpuCode* code = nullptr;  ///< the best, if any
  auto quality() const { return static_cast<uint32_t>(code_class) * 100 + minor; }
};

/// The best of `codes` on `gpu`. `cuda` is the CUDA version of the driver ("12.8"). If it is empty
/// (unknown), any PTX passes.
CodeFit best_fit(const std::vector<facts::GpuCode>& codes, const node::NodeGpu& gpu,
                 std::string_view cuda);

/// The oldest kernel module for a CUDA runtime. It depends on the major version since CUDA 11, on
/// the full version before. Empty: unknown.
std::string_view oldest_driver(std::string_view cuda);

/// The first CUDA version with drivers that read PTX of version `isa`; empty: unknown.
std::string cuda_of_ptx(std::string_view isa);

/// The oldest driver that reads zstd-compressed code.
inline constexpr std::string_view kOldestDriverForZstd = "550.54.14";

}  // namespace berth::match
