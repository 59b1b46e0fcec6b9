// SPDX-License-Identifier: Apache-2.0
// The GPUs of a batch job, found from the variables that its scheduler sets. See
// docs/decisions/0026.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/grant/environment.hpp"
#include "gpu/grant/request.hpp"

namespace berth::gpu {

/// Variables by which programs find the GPUs they may use, in order of precedence.
const std::vector<std::string_view>& selection_variables();

struct Job {
  std::string scheduler;               ///< "Slurm"
  std::string evidence;                ///< the variable that shows the scheduler: "SLURM_JOB_ID"
  std::vector<Limit> limits;           ///< empty: the scheduler sets no variable about GPUs
  std::vector<std::string> variables;  ///< the selection_variables() that the scheduler sets

  /// Whether a limit names a GPU: "-1", "NoDevFiles" and similar values name none.
  bool has_gpus() const;
};

/// The job of the process with this environment; nothing if it runs outside of a job.
std::optional<Job> find_job(const Variables& caller);

/// The entries of a selection variable before its first invalid entry: "0,GPU-8f2b,-1,3" gives two,
/// "NoDevFiles" gives none. HTCondor's "CUDA0" becomes "0"; a tile of ZE_AFFINITY_MASK ("0.1")
/// becomes its GPU ("0").
std::vector<std::string> parse_selection(std::string_view value);

}  // namespace berth::gpu
