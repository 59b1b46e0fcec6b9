// SPDX-License-Identifier: Apache-2.0
// How the ranks of a program find each other: what their launcher offers, and what their MPI takes.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "mpi/find.hpp"

namespace berth::mpi {

/// Protocols between a launcher and its ranks.
struct Wires {
  bool pmi = false;   ///< PMI 1 or 2: MPICH's mpiexec, srun --mpi=pmi2
  bool pmix = false;  ///< PMIx: Open MPI's mpirun, srun --mpi=pmix
};

/// What a launcher has started.
struct Launch {
  bool slurm = false;  ///< a step of Slurm, or else an mpirun
  uint64_t ranks = 0;
  Wires offers;
  /// The ranks of this node do not have their numbers on it in the order of their ranks, as far as
  /// this rank can tell: Open MPI 6.0.0rc2's mpirun with more ranks than slots.
  bool unordered = false;
};

/// An MPI that a program uses, and what it takes.
struct Used {
  Abi abi;
  Wires takes;
  bool needs_order = false;  ///< of Launch; its shared memory crashes or hangs without it
  bool called = true;        ///< by the program itself; else only a library of it is linked with it
  bool by_itself = false;    ///< it may know a way that Launch does not tell of: its vendor's, or a
                             ///< library of Slurm's that it is linked with
};

/// Open MPI takes PMIx alone since 5, and before that what its plugins have. MPICH and its kin have
/// PMI built in, and PMIx where they are linked with it. `libraries` are those that `mpi` is of.
/// Errors: io (of the tree alone).
/// Open MPI before 5 finds its neighbours' segments by counting ranks (btl/vader).
/// Source: Open MPI 5.0 documentation, "Launching with Slurm"; MPICH 4.2 README, "Process
/// Managers".
Result<Used> use_of(Libraries& libraries, const Installation& mpi);

/// Why `launch` would not become one world of all its ranks: as many worlds of one, which no MPI
/// reports, for each computes the whole; or ranks that crash. With what to try. Empty: nothing is
/// known to speak against it.
struct Objection {
  std::string why;
  std::string hint;
  bool alone = false;  ///< worlds of one rank, which may be what is meant
  explicit operator bool() const { return !why.empty(); }
};
Objection objection(const Launch& launch, const Used& mpi);

}  // namespace berth::mpi
