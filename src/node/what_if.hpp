// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// `profile` with modifications: `words` has KEY=VALUE pairs separated by blanks; later pairs win.
///
///   driver=580.65     the NVIDIA driver, with the CUDA version of its branch; "none"
///   cuda=13.1         the driver's CUDA version, if it differs from that of its branch
///   gpu=sm_90,sm_80   replaces all GPUs; "gfx90a"; "none"
///   brand=tesla       the brand of all NVIDIA GPUs
///   cpu=broadwell     a microarchitecture, with its architecture
///   level=3           an x86-64 level; the CPU is otherwise unknown
///   arch=arm64        the architecture; the CPU becomes unknown if it was of another one
///   kernel=6.1        the release of the kernel
///   libc=glibc-2.28   or 2.28, or musl
///   rocm=6.2
///   fabric=efa,roce   or "none"
///   mpi=openmpi       or mpich, or "none"
///
/// Errors: usage (an unknown key: suggests the nearest one; an invalid value).
Result<Profile> with(Profile profile, std::string_view words);

}  // namespace berth::node
