// SPDX-License-Identifier: Apache-2.0
// Which code runs on which GPU, and which driver a CUDA version needs.
// Source: NVIDIA's CUDA compatibility guide; the CUDA C++ programming guide, "compute capability";
// release notes of the toolkits (minimum drivers); the PTX ISA, "release notes".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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
  family,  ///< "100f" on 10.0 and 10.3; AMD: "gfx11-generic"
  exact,   ///< "90a" on 9.0; AMD: the same architecture
};

struct CodeFit {
  CodeClass code_class = CodeClass::none;
  uint32_t minor = 0;       ///< of SASS: the nearer to the GPU's minor version the better
  bool is_too_new = false;  ///< of one piece of PTX: for the GPU, but too new for the driver
  /// If nothing runs: of the PTX for the GPU that is too new for the driver, the oldest.
  const facts::GpuCode* newer_ptx = nullptr;
  const facts::GpuCode* code = nullptr;  ///< the best, if any
  auto quality() const { return static_cast<uint32_t>(code_class) * 100 + minor; }
};

/// The best of `codes` on `gpu`. `cuda` is the CUDA version of the driver ("12.8"). If it is empty
/// (unknown), any PTX passes.
CodeFit best_fit(const std::vector<facts::GpuCode>& codes, const node::NodeGpu& gpu,
                 std::string_view cuda);

/// Whether a GPU runs plain cubins ("sm_80") made for another compute capability: "8.0" on "8.9",
/// but not on Tegra's "8.7".
bool runs_cubins_of(std::string_view capability, std::string_view gpu);

/// Whether a compute capability is that of a GPU of Tegra (Jetson, DRIVE): "8.7".
bool is_tegra(std::string_view capability);

struct CudaDriver {
  std::string_view cuda, driver;
};
/// CUDA version → the driver that came with it (Linux, x86_64): release notes, "CUDA Toolkit and
/// Corresponding Driver Versions", the first release that is no preview. CUDA 12.7 was released as
/// a driver only.
inline constexpr std::array<CudaDriver, 31> kCudaDrivers = {{
    {"6.5", "340.29"},     {"7.0", "346.46"},     {"7.5", "352.31"},     {"8.0", "367.48"},
    {"9.0", "384.81"},     {"9.1", "390.46"},     {"9.2", "396.26"},     {"10.0", "410.48"},
    {"10.1", "418.39"},    {"10.2", "440.33"},    {"11.0", "450.51.05"}, {"11.1", "455.23"},
    {"11.2", "460.27.03"}, {"11.3", "465.19.01"}, {"11.4", "470.42.01"}, {"11.5", "495.29.05"},
    {"11.6", "510.39.01"}, {"11.7", "515.43.04"}, {"11.8", "520.61.05"}, {"12.0", "525.60.13"},
    {"12.1", "530.30.02"}, {"12.2", "535.54.03"}, {"12.3", "545.23.06"}, {"12.4", "550.54.14"},
    {"12.5", "555.42.02"}, {"12.6", "560.28.03"}, {"12.7", "565.57.01"}, {"12.8", "570.26"},
    {"12.9", "575.51.03"}, {"13.0", "580.65.06"}, {"13.1", "590.44.01"},
}};

/// Major version of CUDA → the oldest driver for all of its minor versions: CUDA Compatibility,
/// "Minor Version Compatibility".
inline constexpr std::array<CudaDriver, 3> kMajorDrivers = {
    {{"11", "450.80.02"}, {"12", "525.60.13"}, {"13", "580.65.06"}}};

struct PtxVersion {
  std::string_view ptx, cuda;
};
/// PTX version → the first CUDA version with drivers that compile it: PTX ISA, "Release Notes".
inline constexpr std::array<PtxVersion, 30> kPtxVersions = {{
    {"4.1", "6.5"},  {"4.2", "7.0"},  {"4.3", "7.5"},  {"5.0", "8.0"},  {"6.0", "9.0"},
    {"6.1", "9.1"},  {"6.2", "9.2"},  {"6.3", "10.0"}, {"6.4", "10.1"}, {"6.5", "10.2"},
    {"7.0", "11.0"}, {"7.1", "11.1"}, {"7.2", "11.2"}, {"7.3", "11.3"}, {"7.4", "11.4"},
    {"7.5", "11.5"}, {"7.6", "11.6"}, {"7.7", "11.7"}, {"7.8", "11.8"}, {"8.0", "12.0"},
    {"8.1", "12.1"}, {"8.2", "12.2"}, {"8.3", "12.3"}, {"8.4", "12.4"}, {"8.5", "12.5"},
    {"8.6", "12.7"}, {"8.7", "12.8"}, {"8.8", "12.9"}, {"9.0", "13.0"}, {"9.1", "13.1"},
}};

/// The driver that came with a CUDA version ("12.8", "12.8.1"); empty: unknown.
std::string_view driver_of_cuda(std::string_view cuda);

/// The oldest kernel module for a CUDA runtime: since CUDA 11 that of its major version, unless its
/// own is older; before, its own. Empty: unknown.
std::string_view oldest_driver(std::string_view cuda);

/// Whether a kernel module works with a CUDA runtime: by oldest_driver(), or, if the runtime is
/// newer than the tables, by the CUDA version of the driver. Nothing: neither is known.
std::optional<bool> driver_works_with(std::string_view cuda, const node::NodeDriver& driver);

/// The first CUDA version with drivers that read PTX of version `isa`, and the first of these
/// drivers. Minor version compatibility does not include PTX. Empty: unknown.
std::string_view cuda_of_ptx(std::string_view isa);
std::string_view driver_of_ptx(std::string_view isa);

/// Whether a kernel module is no older than `oldest`. One of which only the first numbers are known
/// ("535", "580.65") is the newest that begins with them.
bool reaches_driver(std::string_view module, std::string_view oldest);

/// "535" of "535.54.03".
std::string_view branch_of(std::string_view driver);

/// A GPU that runs the first piece of code that runs on any, as 'berth what-if gpu=' takes it:
/// "sm_90" for "sm_90a" and for "compute_90@8.7", "gfx90a" for "gfx90a:xnack-". Empty: there is no
/// such code.
std::string gpu_word(const std::vector<facts::GpuCode>& codes);

/// The oldest driver that reads zstd-compressed code.
inline constexpr std::string_view kOldestDriverForZstd = "550.54.14";

}  // namespace berth::match
