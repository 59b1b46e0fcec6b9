// SPDX-License-Identifier: Apache-2.0
// What ranks of MPI programs need of the node that Slurm starts them on. MPICH's need nothing: they
// talk to Slurm's PMI2 by a descriptor that a task keeps when it joins its container.
#pragma once

#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// Adds what a step of `srun --mpi=pmix` has on this node, and to another step nothing: the
/// directories of Slurm's PMIx plugin, at their own places, and for the image's PMIx which modules
/// the node's speaks with, where the job does not say that itself. What is missing is left out.
/// Source: Slurm 22.05, src/plugins/mpi/pmix; PMIx 4.2 (PMIX_MCA_*); the variables are those that
/// enroot's hook for PMIx derives.
void add_pmix(const Environment& job, RunRequest& request);

}  // namespace berth::engine
