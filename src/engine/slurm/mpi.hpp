// SPDX-License-Identifier: Apache-2.0
// What ranks of MPI programs need from the node when Slurm starts them. MPICH ranks need nothing:
// they use Slurm's PMI2 through a descriptor, which a task keeps when it joins its container.
#pragma once

#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// Adds what a step of `srun --mpi=pmix` needs, and nothing to other steps: the directories of
/// Slurm's PMIx plugin, at their own paths, and the modules of the node's PMIx as variables for the
/// image's PMIx, unless the job sets them. Skips what is missing.
/// Source: Slurm 22.05, src/plugins/mpi/pmix; PMIx 4.2 (PMIX_MCA_*); the variables are those that
/// enroot's hook for PMIx derives.
void add_pmix(const Environment& job, RunRequest& request);

}  // namespace berth::engine
