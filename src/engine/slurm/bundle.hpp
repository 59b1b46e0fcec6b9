// SPDX-License-Identifier: Apache-2.0
// Slurm's own containers: what is run of a bundle that slurmstepd has written for a task of
// `--container` (docs/decisions/0167).
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

struct SlurmBundle {
  std::string id;         ///< of the container that berth-runtime makes
  std::string directory;  ///< with a config.json, whose process is the task
  std::string job;        ///< "12.0"
  bool remove = false;    ///< config.json of an image's task is removed once it is read
};

/// Becomes the program that runs the task: berth-runtime, with our variables, where the bundle is a
/// user's; `berth slurm step` with those of the task, where its path spells an image's name.
/// Returns only to say why not.
/// Errors: not_found, corrupt (config.json), usage (a variable of the container's options), denied.
Result<void> run_slurm_bundle(const Context& context, const SlurmBundle& bundle);

}  // namespace berth::engine
