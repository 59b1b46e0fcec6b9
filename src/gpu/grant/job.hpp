// SPDX-License-Identifier: Apache-2.0
// The GPUs of a batch job, by the variables that its scheduler sets. See docs/decisions/0026.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/grant/environment.hpp"
#include "gpu/grant/request.hpp"

namespace berth::gpu {

/// Variables by which programs find the GPUs they may use, in the order in which they count.
const std::vector<std::string_view>& selection_variables();

struct Job {
  std::string scheduler;               ///< "Slurm"
  std::string evidence;                ///< the variable that tells: "SLURM_JOB_ID"
  std::vector<Limit> limits;           ///< empty: its scheduler says nothing of GPUs
  std::vector<std::string> variables;  ///< selection_variables() that it sets

  /// Whether any of its GPUs is named: "-1", "NoDevFiles" and the like name none.
  bool has_gpus() const;
};

/// The job that the process with this environment runs in; nothing outside of a scheduler.
std::optional<Job> find_job(const Variables& caller);

/// The entries of such a variable up to the first that can name nothing: "0,GPU-8f2b,-1,3" gives
/// two, "NoDevFiles" none. HTCondor's "CUDA0" is "0", a tile of ZE_AFFINITY_MASK ("0.1") its GPU.
std::vector<std::string> parse_selection(std::string_view value);

}  // namespace berth::gpu
