// SPDX-License-Identifier: Apache-2.0
// Runs as: slurmstepd, which is root. Hostile: the values of the user's variables, which are stored
// and passed to a program that runs as the user. No other program parses them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::spank {

/// Records, for end_job(), that the job had containers on this node, and the variables by which
/// berth finds these containers.  Errors: io.
Result<void> note_job(uint32_t job, const std::vector<std::string>& environment);

struct JobEnd {
  uint32_t job = 0;
  uid_t user = 0;
  gid_t group = 0;
  std::string program;
  std::string scope;  ///< of container names: "global" or "job"
  int patience = 0;   ///< ms
};
/// Removes the remaining containers of the job on this node (engine::containers_of_job()): runs
/// `berth slurm epilog` as the user of the job. Does nothing if note_job() was not called. Errors:
/// io (berth could not be started, failed, or was killed after `patience`).
Result<void> end_job(const JobEnd& end);

}  // namespace berth::spank
