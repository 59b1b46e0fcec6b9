// SPDX-License-Identifier: Apache-2.0
// How the ranks of a program find each other: the protocols of the launcher, and those of the MPI
// that the program uses.
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
  bool slurm = false;  ///< started in a step of Slurm; otherwise by an mpirun
  uint64_t ranks = 0;
  Wires offers;
  /// As far as this rank can tell, the local ranks on this node are not in the order of the global
  /// ranks: mpirun of Open MPI 6.0.0rc2 does this with more ranks than slots.
  bool unordered = false;
};

/// An MPI that a program uses, and the protocols it supports.
struct Used {
  Abi abi;
  Wires takes;
  bool needs_order = false;  ///< shared memory crashes or hangs if the local ranks are unordered
  bool called = true;        ///< the program itself calls it; else only a library links it
  bool by_itself = false;    ///< it may start without the protocols in Launch: by a protocol of its
                             ///< vendor, or by a library of Slurm that it is linked with
};

/// The protocols that `mpi` supports. Open MPI supports only PMIx since version 5; what earlier
/// versions support depends on their plugins. MPICH and its derivatives have PMI built in, and
/// support PMIx if they are linked with it. `libraries` is the root file system that has `mpi`.
/// `needs_order` is for Open MPI before 5, which finds the shared memory of its neighbours by
/// counting ranks (btl/vader).
/// Errors: io (of the tree only).
/// Source: Open MPI 5.0 documentation, "Launching with Slurm"; MPICH 4.2 README, "Process
/// Managers".
Result<Used> use_of(Libraries& libraries, const Installation& mpi);

/// Why the ranks of `launch` would not form one MPI_COMM_WORLD, and what to try. Either each rank
/// would be alone in a world of size 1, which no MPI reports as an error (each rank then computes
/// the whole problem), or ranks would crash. Empty: no objection.
struct Objection {
  std::string why;
  std::string hint;
  bool alone = false;  ///< worlds of one rank, which may be intended
  explicit operator bool() const { return !why.empty(); }
};
Objection objection(const Launch& launch, const Used& mpi);

}  // namespace berth::mpi
