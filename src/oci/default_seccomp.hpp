// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oci/runtime_spec.hpp"

/// The seccomp profile of a container without one of its own: Docker's, in our own tables.
namespace berth::oci {

/// A processor family, including the 32-bit ABIs of its kernel.
enum class Machine {
  x86_64,   ///< including the ABIs X86 and X32
  aarch64,  ///< including the ABI ARM
};

/// The family that this program was compiled for.
Machine native_machine();

/// Docker's default profile for a container with the bounding set `capabilities` (spec names): a
/// system call that is not listed fails with EPERM, or with ENOSYS if it is newer than all that the
/// compiler knows (runtime/seccomp). The calls for namespaces, mounts, bpf, … need
/// the capability they belong to. clone3 fails with ENOSYS, so that libc uses clone, whose flags a
/// filter can check. Sockets of AF_ALG and AF_VSOCK, and io_uring, are refused. The first rule is
/// the one that allows most calls, and its names are sorted.
/// Source: the behaviour of moby's default profile (2026-06), without its hole: a socket family is
/// still recognised if bits above the 32 that the kernel reads are set.
Seccomp default_seccomp(const std::vector<std::string>& capabilities, Machine machine);

}  // namespace berth::oci
