// SPDX-License-Identifier: Apache-2.0
// A container as one rank of an MPI program: what its launcher and the other ranks expect. Pure
// except for add_meeting_places() and join_launcher().
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

/// The launcher that started this process as one of several. It is known from the variables of Open
/// MPI's mpirun, of Hydra and similar launchers (PMI), and of PMIx.
struct Launcher {
  std::string name;  ///< "Open MPI", "PMI", "PMIx"
  uint64_t rank = 0;
  uint64_t size = 0;  ///< 0: unknown
};
std::optional<Launcher> launcher_of(const Environment& environment);

/// How ranks find each other, from the launcher's variables. Nothing if this process is not one of
/// several, or if Flux started it.
std::optional<mpi::Launch> launch_of(const Environment& environment);

/// False for all ranks but the first, so that a message for all ranks is printed once.
bool speaks_for_ranks(const Environment& environment);

/// --mpi and --mpi-compatibility; empty: not set.
struct MpiFlags {
  std::string mode;
  std::string compatibility;
};

/// The request from `flags` and BERTH_MPI; nothing if neither is set, or for "none".
/// Errors: usage.
Result<std::optional<MpiRequest>> read_mpi(const MpiFlags& flags, const Environment& environment);

/// Paths where the ranks of this node and their launcher share files: those that the launcher's
/// variables name, and those of Slurm's PMIx plugin. Leaves out directories that all users share,
/// such as /tmp.
std::vector<std::string> meeting_paths(const Environment& environment);

/// Adds a volume for each of the meeting_paths(), at the same path in the container, if it is a
/// directory on this node and no volume of `request` contains it.
void add_meeting_places(const Environment& environment, RunRequest& request);

/// Makes `request` share the node's namespaces unless flags choose otherwise: network, pid, ipc and
/// uts. An ordinary user also keeps their own id in the container.
void share_with_node(const Context& context, const NetworkFlags& network, RunRequest& request);

/// Does all of the above for the container of `request`.
/// Errors: usage.
Result<void> join_launcher(const Context& context, const MpiFlags& flags,
                           const NetworkFlags& network, RunRequest& request, RunCall& call);

}  // namespace berth::engine
