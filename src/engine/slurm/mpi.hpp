// SPDX-License-Identifier: Apache-2.0
// The files and variables of the node that MPI ranks need when Slurm starts them. Ranks of MPICH
// need nothing: they use Slurm's PMI2 through a descriptor, which a task keeps when it joins its
// container.
#pragma once

#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// For a step of `srun --mpi=pmix`, adds the directories of Slurm's PMIx plugin as mounts at the
/// same paths, and variables that select the modules of the node's PMIx for the PMIx of the image,
/// unless the job sets these variables. Skips missing directories. Does nothing for other steps.
/// Source: Slurm 22.05, src/plugins/mpi/pmix; PMIx 4.2 (PMIX_MCA_*); enroot's PMIx hook derives the
/// same variables.
void add_pmix(const Environment& job, RunRequest& request);

}  // namespace berth::engine
