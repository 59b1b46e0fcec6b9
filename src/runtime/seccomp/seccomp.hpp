// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// The kernel's limit (BPF_MAXINSNS).
constexpr size_t kMaxSeccompInstructions = 4096;

/// Compiles `profile` into a classic BPF program for seccomp(2): one section per architecture, each
/// a binary search over ranges of call numbers with the same decision.
/// - The rules of one call are tried in the order of the profile. The first rule with all its
///   conditions true decides; the conditions of one rule are ANDed. (libseccomp lets a rule without
///   conditions win over any other; profiles in use do not contain both with different actions.)
/// - Names that an architecture does not have are skipped there, as every runtime does.
/// - If the default action is ERRNO, call numbers above all those that the profile or libseccomp
///   names give ENOSYS, so that a libc newer than the profile uses its fallback.
/// - A call of an architecture that the profile does not list kills the process; a profile without
/// architectures means the native one.
/// Compiling Docker's profile takes about 0.2 ms, while the container's process mounts; nothing is
/// cached.
/// Errors: corrupt (an unknown action, op, architecture or argument index, by its JSON path:
/// "linux.seccomp.syscalls[3].action: …"), unsupported (NOTIFY on write, which would stop the
/// runtime itself; more than 4096 instructions).
/// Source: runtime-spec config-linux.md "Seccomp".
Result<std::vector<sock_filter>> compile_seccomp(const oci::Seccomp& profile);

/// Errors: corrupt (a system call that no kernel has on this machine's architecture, by its JSON
/// path).
Result<void> check_calls(const oci::Seccomp& profile);

/// The values of the spec that the compiler knows, each list sorted.
struct SeccompWords {
  std::vector<std::string> actions;
  std::vector<std::string> operators;
  std::vector<std::string> architectures;
  std::vector<std::string> known_flags;
  std::vector<std::string> supported_flags;  ///< supported by this kernel
};
SeccompWords seccomp_words();
/// The version of the library that knows the names of the calls: "2.5.4".
std::string libseccomp_version();

/// Whether the filter needs a listener: an action of `profile` is NOTIFY, or `profile` has a
/// listenerPath.
bool needs_listener(const oci::Seccomp& profile);

/// The SECCOMP_FILTER_FLAG_* bits of `profile.flags`, and NEW_LISTENER when the filter needs a
/// listener.
/// Errors: corrupt (an unknown flag, by its JSON path).
Result<unsigned> seccomp_flags(const oci::Seccomp& profile);

/// Installs `program` in the calling thread, which must have no_new_privs or CAP_SYS_ADMIN. Returns
/// the listener when `flags` has SECCOMP_FILTER_FLAG_NEW_LISTENER, else an empty Fd.
/// Errors: denied, unsupported (a kernel without seccomp or without one of the flags).  seccomp(2)
Result<sys::Fd> load_seccomp(std::span<const sock_filter> program, unsigned flags);

}  // namespace berth::runtime
