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
  none,    ///< nothing of it runs
  jit,     ///< PTX, which the driver compiles at the first start
  sass,    ///< of the same major version
  family,  ///< "100f"
  exact,   ///< "90a" on 9.0; AMD: the same architecture
};

struct CodeFit {
  CodeClass code_class = CodeClass::none;
  uint32_t minor = 0;      ///< of SASS: nearer to the GPU's is better
  bool newer_ptx = false;  ///< there is PTX for it, but of a language newer than the driver's
  const facts::GpuCode* code = nullptr;  ///< the best, if any
  auto quality() const { return static_cast<uint32_t>(code_class) * 100 + minor; }
};

/// The best of `codes` on `gpu`. `cuda` is the driver's ("12.8"; empty: unknown, any PTX will do).
CodeFit best_fit(const std::vector<facts::GpuCode>& codes, const node::NodeGpu& gpu,
                 std::string_view cuda);

/// The oldest kernel module that a CUDA runtime works with: for 11 and later that of its major
/// version, before that of the version itself. Empty: unknown.
std::string_view oldest_driver(std::string_view cuda);

/// The CUDA version whose drivers first read PTX of language `isa`; empty: unknown.
std::string cuda_of_ptx(std::string_view isa);

/// Packed with zstd: the oldest driver that reads it.
inline constexpr std::string_view kOldestDriverForZstd = "550.54.14";

}  // namespace berth::match
