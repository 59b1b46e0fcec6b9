// SPDX-License-Identifier: Apache-2.0
// A container as one rank of an MPI program: what its launcher and its neighbours expect of it.
// Pure but for add_meeting_places() and join_launcher().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/network/network.hpp"
#include "engine/request/request.hpp"
#include "mpi/wire.hpp"

namespace berth::engine {

/// The launcher that started this process as one of several, as the variables of Open MPI's mpirun,
/// of Hydra and its kin (PMI) and of PMIx say it.
struct Launcher {
  std::string name;  ///< "Open MPI", "PMI", "PMIx"
  uint64_t rank = 0;
  uint64_t size = 0;  ///< 0: it does not say
};
std::optional<Launcher> launcher_of(const Environment& environment);

/// What they say of how ranks find each other. Nothing where this process is not one of several.
std::optional<mpi::Launch> launch_of(const Environment& environment);

/// False for all ranks but the first: what is true of all is said once.
bool speaks_for_ranks(const Environment& environment);

/// --mpi and --mpi-compatibility; empty: not said.
struct MpiFlags {
  std::string mode;
  std::string compatibility;
};

/// What `flags` and BERTH_MPI say; nothing without either, and for "none".
/// Errors: usage.
Result<std::optional<MpiRequest>> read_mpi(const MpiFlags& flags, const Environment& environment);

/// The caller's variables that a rank needs: those of the launcher, and settings of MPIs and
/// fabrics that are no paths of an installation. "NAME=value".
std::vector<std::string> rank_variables(const Environment& environment);

/// Paths where ranks of this node, and their launcher, leave files for each other: as the variables
/// name them, and those of Slurm's PMIx plugin, but for directories that are everybody's, such as
/// /tmp.
std::vector<std::string> meeting_paths(const Environment& environment);

/// Volumes at the same paths for those of them that are directories of this node and that no volume
/// of `request` shows.
void add_meeting_places(const Environment& environment, RunRequest& request);

/// Gives `request` the namespaces of the node in which no flag says anything else: network, pid,
/// ipc and uts, and for an ordinary user his own id.
void share_with_node(const Context& context, const NetworkFlags& network, RunRequest& request);

/// All of the above for a container that `request` describes so far.
/// Errors: usage.
Result<void> join_launcher(const Context& context, const MpiFlags& flags,
                           const NetworkFlags& network, RunRequest& request, RunCall& call);

}  // namespace berth::engine
