// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The protocol between spank_berth.so, in a Slurm task, and berth-hold, the first process of a
/// step's container (docs/decisions/0160). Both come from one build, so the protocol has no
/// version. A task sends one arbitrary byte to the step's socket, with one end of a socket pair as
/// SCM_RIGHTS. The answer arrives at the other end of the pair: a HoldAnswer with the handles that
/// HoldAnswer::handles names, in the order of the bits.
namespace berth::slurm {

/// The descriptors that berth-hold inherits.
constexpr int kHoldSocket = 3;  ///< the step's socket, a SOCK_SEQPACKET
/// A descriptor that berth inherits: an empty memfd that can be sealed. berth-runtime writes the
/// limits on the processes of the container (Rights and the seccomp program) into the memfd and
/// seals it before any process of the container runs. Tasks get the memfd from slurmstepd, so no
/// process in the container can forge it.
constexpr int kRightsFile = 4;

/// A variable of berth-hold: comma-separated names of variables that the job cannot set, even with
/// --container-env. Tasks get their values from the container, or do not have these variables at
/// all.
constexpr const char* kDecidedVariable = "BERTH_STEP_DECIDED";

enum Handle : uint32_t {
  kUserSpace = 1,
  kCgroupSpace = 2,
  kIpcSpace = 4,
  kUtsSpace = 8,
  kNetworkSpace = 16,
  kMountSpace = 32,    ///< last of the namespaces, since it changes what paths mean
  kDirectory = 64,     ///< the working directory, O_PATH
  kEnvironment = 128,  ///< the variables, as in /proc/PID/environ
};
constexpr uint32_t kAllHandles = 255;
constexpr int kHandles = 8;

struct HoldAnswer {
  uint32_t handles = 0;
};

/// The header in front of struct sock_filter[`instructions`].
struct Rights {
  uint64_t bounding = 0;           ///< the capabilities that a task may keep, as bits
  uint32_t no_new_privileges = 0;  ///< 0 or 1
  uint32_t seccomp_flags = 0;      ///< SECCOMP_FILTER_FLAG_*
  uint32_t instructions = 0;       ///< 0: no seccomp program
  uint32_t unused = 0;
};

}  // namespace berth::slurm
