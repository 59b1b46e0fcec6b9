// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The protocol between spank_berth.so, in a task of Slurm's, and berth-hold, the first process of
/// a step's container (docs/decisions/0160). Both come from one build, so there is no version. A
/// task sends one byte, any, with its end of a socket pair as SCM_RIGHTS to the step's socket; the
/// answer arrives there: a HoldAnswer with the handles that its `handles` names, in the order of
/// their bits.
namespace berth::slurm {

/// The descriptors of berth-hold at its start.
constexpr int kHoldSocket = 3;  ///< of the step: a SOCK_SEQPACKET
/// A descriptor of berth at its start: an empty memfd that can be sealed. berth-runtime writes the
/// limits of the container's processes (Rights and the seccomp program) into it, and seals it,
/// before anything of the container runs. Tasks get it from slurmstepd, so no process in the
/// container can forge it.
constexpr int kRightsFile = 4;

/// A variable of berth-hold: comma-separated names of variables that the job cannot set, even with
/// --container-env. Tasks have them as the container does, or not at all.
constexpr const char* kDecidedVariable = "BERTH_STEP_DECIDED";

enum Handle : uint32_t {
  kUserSpace = 1,
  kCgroupSpace = 2,
  kIpcSpace = 4,
  kUtsSpace = 8,
  kNetworkSpace = 16,
  kMountSpace = 32,    ///< last of the namespaces: it changes what paths mean
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
  uint64_t bounding = 0;           ///< capabilities that a task may keep, a bit for each
  uint32_t no_new_privileges = 0;  ///< 0 or 1
  uint32_t seccomp_flags = 0;      ///< SECCOMP_FILTER_FLAG_*
  uint32_t instructions = 0;       ///< 0: there is no seccomp program
  uint32_t unused = 0;
};

}  // namespace berth::slurm
