// SPDX-License-Identifier: Apache-2.0
// How the ranks of a program find each other: the launcher's protocols, and those of their MPI.
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

/// The launcher of this process.
struct Launch {
  bool slurm = false;  ///< a step of Slurm; otherwise an mpirun
  uint64_t ranks = 0;
  Wires offers;
  /// The local ranks of this node are not in the order of the ranks, as far as this rank can tell:
  /// Open MPI 6.0.0rc2's mpirun with more ranks than slots.
  bool unordered = false;
};

/// An MPI that a program uses, and the protocols it supports.
struct Used {
  Abi abi;
  Wires takes;
  bool needs_order = false;  ///< of ranks; its shared memory crashes or hangs otherwise
  bool called = true;        ///< by the program itself; else only a library links it
  bool by_itself = false;    ///< it may have another way than those in Launch: its vendor's, or a
                             ///< library of Slurm's that it is linked with
};

/// Open MPI since 5 supports only PMIx, earlier ones what their plugins support. MPICH and its
/// derivatives have PMI built in, and PMIx if linked with it. `libraries` are those of `mpi`. Open
/// MPI before 5 finds its neighbours' segments by counting ranks (btl/vader).
/// Errors: io (of the tree only).
/// Source: Open MPI 5.0 documentation, "Launching with Slurm"; MPICH 4.2 README, "Process
/// Managers".
Result<Used> use_of(Libraries& libraries, const Installation& mpi);

/// Why `launch` would not become one world of all its ranks, and what to try: it would become many
/// worlds of one rank, which no MPI reports as an error, because each computes the whole; or ranks
/// would crash. Empty: no objection.
struct Objection {
  std::string why;
  std::string hint;
  bool alone = false;  ///< worlds of one rank, which may be intended
  explicit operator bool() const { return !why.empty(); }
};
Objection objection(const Launch& launch, const Used& mpi);

}  // namespace berth::mpi
