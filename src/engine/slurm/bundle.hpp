// SPDX-License-Identifier: Apache-2.0
// Slurm's own containers: runs a bundle that slurmstepd has written for a task of `--container`
// (docs/decisions/0167).
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

struct SlurmBundle {
  std::string id;         ///< of berth-runtime's container
  std::string directory;  ///< has a config.json; its process is the task
  std::string job;        ///< "12.0"
  bool remove = false;    ///< config.json of an image's task is removed after reading
};

/// Executes the program that runs the task: berth-runtime, with our variables, for a user's bundle;
/// `berth slurm step`, with the task's variables, if the bundle's path spells an image's name.
/// Returns only on failure.
/// Errors: not_found, corrupt (config.json), usage (a variable of the container's options), denied.
Result<void> run_slurm_bundle(const Context& context, const SlurmBundle& bundle);

}  // namespace berth::engine
