// SPDX-License-Identifier: Apache-2.0
// Validation and completion of handwritten profiles. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// Checks a handwritten profile, and normalises its names: architecture "x86_64" → "amd64", compute
/// capability "sm_90" → "9.0", libc "2.36" → "glibc 2.36", microarchitecture "skylake-avx512" →
/// "skylake_avx512". Sorts the lists of strings.
/// Errors: unsupported (a later version), corrupt (an invalid member; suggests the nearest known
/// value). Every message begins with "<document>: <member>: ".
Result<void> check(Profile& profile, std::string_view document);

/// Fills empty members that follow from other members of a checked profile: archspec's facts about
/// the CPU, the CUDA version of the driver's branch, the version of the driver's library, the
/// vendor of a GPU, the family of an MPI from its SONAME and the reverse. Unknown members stay
/// empty.
void fill(Profile& profile);

/// "9.0" for "9.0", "9", "90" and "sm_90"; nothing for an invalid compute capability.
std::optional<std::string> compute_capability(std::string_view text);

/// "glibc 2.36" for "glibc 2.36", "glibc-2.36" and "2.36"; "musl", with a version or without.
std::optional<std::string> libc_name(std::string_view text);

/// Whether `text` is one or more numbers separated by dots: "570.133.20".
bool is_version(std::string_view text);

/// Whether `text` begins like a Linux release, with numbers separated by dots: "6.1",
/// "6.1.0-18-amd64".
bool is_kernel_release(std::string_view text);

/// Whether `text` is one of the values of Profile::fabric.
bool is_fabric(std::string_view text);

/// The GPU that "sm_90", "9.0" or "gfx90a" names, with its vendor.
std::optional<NodeGpu> gpu_named(std::string_view text);

/// The MPI library for programs of this family: "openmpi" → libmpi.so.40.
std::optional<Mpi> mpi_named(std::string_view family);

/// The image-spec's name of an architecture: "x86_64" → "amd64".
/// Errors: corrupt (not an architecture of images; suggests the nearest one).
Result<std::string> architecture_named(std::string_view text);

/// archspec's name of a microarchitecture. Errors: corrupt (unknown; suggests the nearest one).
Result<std::string> microarchitecture_named(std::string_view text);

}  // namespace berth::node
