// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// The profile of a node that differs: `words` are KEY=VALUE between blanks, later ones win.
///
///   driver=580.65     the NVIDIA driver, with the CUDA version of its branch; "none"
///   cuda=13.1         what the driver offers, where it is not what its branch says
///   gpu=sm_90,sm_80   the GPUs in place of those that there are; "gfx90a"; "none"
///   brand=tesla       of all NVIDIA GPUs
///   cpu=broadwell     a microarchitecture, with its architecture
///   level=3           of x86-64, and nothing else known of the CPU
///   arch=arm64        the architecture; the CPU is unknown where it was of another
///   kernel=6.1        its release
///   libc=glibc-2.28   or 2.28, or musl
///   rocm=6.2
///   fabric=efa,roce   or "none"
///   mpi=openmpi       or mpich, or "none"
///
/// Errors: usage (no such key, with the nearest; a value that is none).
Result<Profile> with(Profile profile, std::string_view words);

}  // namespace berth::node
