// SPDX-License-Identifier: Apache-2.0
// The container that the tasks of a Slurm step share on one node (docs/decisions/0160).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/image/transfer.hpp"
#include "engine/state/outcome.hpp"
#include "slurm/options.hpp"

namespace berth::engine {

/// The description of a step from spank_berth.so.
struct SlurmStep {
  slurm::Asked asked;
  std::string job;           ///< "12.0": job and step
  bool of_job = false;       ///< container names belong to the job, not to the user
  std::string batch_script;  ///< absolute, on the node; empty: the step runs no script
  std::string directory;     ///< absolute, for relative paths in options
  std::string program;       ///< the program of the tasks, as typed; empty: unknown
};

/// The request for the container of `step`. Nothing is pulled or created yet.
/// Errors: usage, not_found (the file of an image, the source of a mount, a program for saving),
/// denied.
Result<Asked> slurm_container(const Context& context, const SlurmStep& step);

/// Creates or finds the container of `step`, with `asked` from slurm_container(), keeps it until
/// the end of the step, and then saves it if requested.
/// Errors: not_found, exists, usage (a named container is not in the required state), and those of
/// run(), start_held() and save_container_squashfs().
Result<RunOutcome> hold_slurm_step(const Context& context, const SlurmStep& step, Asked asked,
                                   const Progress& progress);

/// Runs one task of `step` in a container of its own. `asked` is the result of slurm_container()
/// with the command added; the variables of the caller are defaults. Errors: unsupported (an option
/// needs a container that outlives the task), and those of run().
Result<RunOutcome> run_slurm_task(const Context& context, const SlurmStep& step, Asked asked,
                                  const Progress& progress);

/// The name of the container of a step without --container-name on this node: "12.0" →
/// "pyxis_12.0-NODE". If several nodes share one store, prefers the container of SLURMD_NODENAME,
/// else the newest.  Errors: not_found.
Result<std::string> container_of_step(const Context& context, const std::string& job);

/// The container that `step` joins if it runs already, or "". This process then has to be in the
/// user namespace of that container.
std::string joined_by(const SlurmStep& step);

/// Converts pyxis's "[USER@][REGISTRY#]IMAGE[:TAG]" to a reference: "nvcr.io#nvidia/cuda:13" gives
/// "nvcr.io/nvidia/cuda:13"; drops a scheme "docker://". Pure.
std::string slurm_reference(std::string_view image);

}  // namespace berth::engine
