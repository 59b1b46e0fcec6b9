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
  bool of_job = false;       ///< names belong to the job, not to the user on this node
  std::string batch_script;  ///< absolute, on the node; empty: the step runs none
  std::string directory;     ///< absolute, for relative paths in options
  std::string program;       ///< the tasks' program, as in srun; empty: unknown
};

/// The request for the container of `step`. Nothing is pulled or created yet.
/// Errors: usage, not_found (an image's file, a mount's source, what saving needs), denied.
Result<Asked> slurm_container(const Context& context, const SlurmStep& step);

/// Creates or finds the container of `step`, with `asked` from slurm_container(), holds it to the
/// end of the step, and then saves it if requested.
/// Errors: not_found, exists, usage (a named container is not in the required state), and those of
/// run(), start_held() and save_container_squashfs().
Result<RunOutcome> hold_slurm_step(const Context& context, const SlurmStep& step, Asked asked,
                                   const Progress& progress);

/// Runs one task of `step` in its own container, with `asked` from slurm_container(), with the
/// command set, and with the caller's variables as defaults. Errors: unsupported (an option needs a
/// container that stays), and those of run().
Result<RunOutcome> run_slurm_task(const Context& context, const SlurmStep& step, Asked asked,
                                  const Progress& progress);

/// The container on this node of a step that named none: "12.0" → "pyxis_12.0-NODE". If several
/// nodes share one store, the one of SLURMD_NODENAME, or the newest.  Errors: not_found.
Result<std::string> container_of_step(const Context& context, const std::string& job);

/// The container that `step` may join if it runs already, or "": determines the user namespace of
/// this process.
std::string joined_by(const SlurmStep& step);

/// Converts pyxis's "[USER@][REGISTRY#]IMAGE[:TAG]" to a reference: "nvcr.io#nvidia/cuda:13" gives
/// "nvcr.io/nvidia/cuda:13"; drops a scheme "docker://". Pure.
std::string slurm_reference(std::string_view image);

}  // namespace berth::engine
