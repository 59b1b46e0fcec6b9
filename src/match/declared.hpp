// SPDX-License-Identifier: Apache-2.0
// The requirements that an image's publisher declares: annotations of its entry in an index, its
// platform, labels of its config. They are untrusted; unknown parts are kept for messages.
// docs/variants.md lists the names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.hpp"
#include "oci/image_spec.hpp"

namespace berth::match {

inline constexpr std::string_view kPrefix = "dev.berth.variant.";

/// One comparison of versions: ">=525.60.13". Without an operator it is "=".
struct VersionNeed {
  enum class Op { equal, at_least, at_most, less, greater };
  Op op = Op::at_least;
  std::string version;
  bool operator==(const VersionNeed&) const = default;
};

struct Declared {
  bool any = false;                  ///< at least one of the following is declared
  std::string cpu;                   ///< "x86-64-v3", or archspec's name: "skylake_avx512"
  bool gpu_said = false;             ///< GPU code is declared, even if as "none"
  std::vector<facts::GpuCode> gpu;   ///< sorted, without duplicates; empty with gpu_said: none
  std::string cuda;                  ///< runtime: "12.8"
  std::string user_driver;           ///< the version of the image's libcuda: "390.30"
  std::vector<VersionNeed> driver;   ///< of the kernel module; all of them apply
  std::vector<VersionNeed> kernel;   ///< of Linux
  std::string glibc;                 ///< the image's version: "2.36"
  std::string mpi;                   ///< family: "openmpi"
  std::vector<std::string> fabric;   ///< fabrics that it is made for: "infiniband"
  int64_t priority = 0;              ///< set by the author; higher is better
  std::vector<std::string> require;  ///< values of NVIDIA_REQUIRE_*
  /// Processor features by Linux's names: "avx512_vnni"; sorted, without duplicates.
  std::vector<std::string> cpu_features;
  /// Unknown names below kPrefix, and invalid values, as messages.
  std::vector<std::string> puzzles;
};

/// Reads an entry of an index: its annotations, and platform features as MetaHub and others write
/// them ("cpu:broadwell", "nvcap:5.2", "mpi:openmpi"). Does not read platform.variant.
Declared read_declared(const oci::Descriptor& entry);

/// Reads a config: labels with the same names as the annotations, and NVIDIA_REQUIRE_* unless
/// NVIDIA_DISABLE_REQUIRE is true.
Declared read_declared(const oci::ContainerDefaults& config);

/// Whether read_declared() reads a variable or label of this name.
bool declares(std::string_view name);

/// `over` has precedence over `under`; requirements of both apply.
Declared merge(Declared under, const Declared& over);

/// Parses "sm_70", "sm_90a", "compute_90", "compute_90@8.7", "5.2", "gfx942"; nothing for other
/// strings.
std::optional<facts::GpuCode> parse_gpu_code(std::string_view text);
/// The inverse of parse_gpu_code(): "sm_90a", "compute_90@8.7", "gfx942".
std::string gpu_code_text(const facts::GpuCode& code);
/// "sm_70 sm_80 compute_80", at most `most` of them, then "and 12 more".
std::string gpu_codes_text(const std::vector<facts::GpuCode>& codes, size_t most = 6);

/// Splits `text` at blanks and commas.
std::vector<std::string_view> list_words(std::string_view text);

}  // namespace berth::match
