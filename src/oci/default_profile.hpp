// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oci/runtime_spec.hpp"

/// The defaults of a container: Docker's, as our own tables.
namespace berth::oci {

/// A processor family, including the 32-bit ABIs of its kernel.
enum class Machine {
  x86_64,   ///< and X86, X32
  aarch64,  ///< and ARM
};

/// The family that this program was compiled for.
Machine native_machine();

/// Docker's default profile for a container with the bounding set `capabilities` (spec names):
/// ERRNO EPERM for everything that is not listed; namespaces, mounts, bpf, … only with their
/// capability; clone3 ENOSYS, so that libc uses clone, with flags that a filter can check; no
/// AF_ALG and no AF_VSOCK sockets; no io_uring. The rule that allows most calls is first and its
/// names are sorted.
/// Source: the behaviour of moby's default profile (2026-06), without its hole: a socket family
/// with bits above the 32 that the kernel reads is still that family.
Seccomp default_seccomp(const std::vector<std::string>& capabilities, Machine machine);

/// Masked paths: they reveal facts about the host or change it.
std::span<const std::string_view> default_masked_paths();

/// Paths of /proc that are made read-only.
std::span<const std::string_view> default_readonly_paths();

}  // namespace berth::oci
