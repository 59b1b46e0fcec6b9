// SPDX-License-Identifier: Apache-2.0
// The container that the tasks of a Slurm step share on one node (docs/decisions/0160).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/asked.hpp"
#include "engine/image/transfer.hpp"
#include "engine/state/outcome.hpp"
#include "slurm/options.hpp"

namespace berth::engine {

/// What spank_berth.so says of a step.
struct SlurmStep {
  slurm::Asked asked;
  std::string job;           ///< "12.0": job and step
  bool of_job = false;       ///< a name is the job's own, not the user's on this node
  std::string batch_script;  ///< absolute, on the node; empty: the step runs none
  std::string directory;     ///< absolute: where paths of options begin
  std::string program;       ///< of its tasks, as srun has it; empty: it is not said
};

/// What `berth run` would be asked for the container of `step`. Nothing is pulled or made yet.
/// Errors: usage, not_found (an image's file, a mount's source, what saving needs), denied.
Result<Asked> slurm_container(const Context& context, const SlurmStep& step);

/// Makes or finds the container that `step` asks for, with `asked` of slurm_container(), holds it
/// to the end of the step, and saves it then where that was asked for.
/// Errors: not_found, exists, usage (what a name's use asks for is not so), and those of run(),
/// start_held() and save_container_squashfs().
Result<RunOutcome> hold_slurm_step(const Context& context, const SlurmStep& step, Asked asked,
                                   const Progress& progress);

/// Runs one task of `step` in a container of its own, with `asked` of slurm_container(), which has
/// its command by now, and with the caller's variables where the image has none. Errors:
/// unsupported (what was asked for needs a container that stays), and those of run().
Result<RunOutcome> run_slurm_task(const Context& context, const SlurmStep& step, Asked asked,
                                  const Progress& progress);

/// The container that a step without a name for it has on this node: "12.0" gives the one that is
/// called "pyxis_12.0-NODE". Where several nodes have one store it is that of SLURMD_NODENAME, or
/// the newest.  Errors: not_found.
Result<std::string> container_of_step(const Context& context, const std::string& job);

/// The names of the containers of job `job` that are left on this node: those of steps, whose owner
/// was killed, and with `of_job` those that are the job's own: "12" gives "pyxis_12_web".
/// Errors: usage (not the number of a job), io.
Result<std::vector<std::string>> containers_of_job(const Context& context, const std::string& job,
                                                   bool of_job);

/// The container of `step` that may run already and would be joined, or "": tells in
/// which user namespace this process works.
std::string joined_by(const SlurmStep& step);

/// The reference that pyxis's "[USER@][REGISTRY#]IMAGE[:TAG]" is: "nvcr.io#nvidia/cuda:13" is
/// "nvcr.io/nvidia/cuda:13"; a scheme "docker://" is left out. Pure.
std::string slurm_reference(std::string_view image);

}  // namespace berth::engine
