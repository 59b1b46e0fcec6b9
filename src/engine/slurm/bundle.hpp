// SPDX-License-Identifier: Apache-2.0
// Slurm's native containers: runs a bundle that slurmstepd has written for a task of `--container`
// (docs/decisions/0167).
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

struct SlurmBundle {
  std::string id;         ///< of berth-runtime's container
  std::string directory;  ///< has a config.json with the task as its process
  std::string job;        ///< "12.0"
  bool remove = false;    ///< remove the config.json of an image's task after reading
};

/// Executes the program that runs the task: berth-runtime with the variables of this process for a
/// bundle of the user; `berth slurm step` with the variables of the task if the path of the bundle
/// spells the name of an image. Returns only on failure.
/// Errors: not_found, corrupt (config.json), usage (a variable of the container's options), denied.
Result<void> run_slurm_bundle(const Context& context, const SlurmBundle& bundle);

}  // namespace berth::engine
