// SPDX-License-Identifier: Apache-2.0
// What is right of a profile that somebody wrote, and what follows from it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// Checks a profile that somebody wrote, and puts its names as we write them: architecture "x86_64"
/// → "amd64", compute capability "sm_90" → "9.0", libc "2.36" → "glibc 2.36", microarchitecture
/// "skylake-avx512" → "skylake_avx512". Lists of words are sorted.
/// Errors: unsupported (a later version), corrupt (a member that says nothing, with the nearest
/// known); each begins "<document>: <member>: ".
Result<void> check(Profile& profile, std::string_view document);

/// Fills what follows from what a checked profile says: of the CPU what archspec knows; of the
/// driver the CUDA version of its branch, and the library's version where it is not said; the
/// vendor of a GPU; an MPI's family of its SONAME and the other way round. What is unknown stays
/// empty.
void fill(Profile& profile);

/// "9.0" of "9.0", "9", "90" and "sm_90"; nothing for what is no compute capability.
std::optional<std::string> compute_capability(std::string_view text);

/// "glibc 2.36" of "glibc 2.36", "glibc-2.36" and "2.36"; "musl", with a version or without.
std::optional<std::string> libc_name(std::string_view text);

/// Digits between dots, at least one: "570.133.20".
bool is_version(std::string_view text);

/// A number, and another behind a dot, as Linux has them: "6.1", "6.1.0-18-amd64".
bool is_kernel_release(std::string_view text);

/// One of the words of Profile::fabric.
bool is_fabric(std::string_view text);

/// The GPU that "sm_90", "9.0" or "gfx90a" names, with its vendor.
std::optional<NodeGpu> gpu_named(std::string_view text);

/// What an MPI library is called that programs of this family ask for: "openmpi" → libmpi.so.40.
std::optional<Mpi> mpi_named(std::string_view family);

/// The image-spec's name of an architecture: "x86_64" → "amd64".
/// Errors: corrupt (no architecture that images are made for, with the nearest).
Result<std::string> architecture_named(std::string_view text);

/// archspec's name of a microarchitecture. Errors: corrupt (none of it, with the nearest).
Result<std::string> microarchitecture_named(std::string_view text);

}  // namespace berth::node
