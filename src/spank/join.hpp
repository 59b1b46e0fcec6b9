// SPDX-License-Identifier: Apache-2.0
// Runs as: a task of Slurm's after it became the user, before it executes his program.
// Capabilities: the user's. Hostile: what comes through the socket, which a task that is in the
// container could send in the place of berth-hold; it is bounded, and all of it is the user's own.
#pragma once

#include <linux/filter.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "slurm/hold.hpp"

namespace berth::spank {

/// What a container gives to a task that joins it; -1: there is no such handle.
struct Handles {
  slurm::HoldAnswer answer;
  int fds[slurm::kHandles] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int fd(slurm::Handle handle) const;
};

/// Asks on `step` and waits until the container is there. Nothing: there will be none.
/// Errors: io, corrupt (not an answer).
Result<std::optional<Handles>> ask(int step);

/// Calls `set` for each variable of the container.  Errors: corrupt (more than 8 MiB), and of set.
Result<void> import_environment(
    const Handles& handles,
    const std::function<Result<void>(const char* name, const char* value)>& set);

/// What a process of the container may do.
struct Confinement {
  slurm::Rights rights;
  std::vector<sock_filter> program;
};
/// Reads it from slurm::kRightsFile of the step, which nobody in the container can change.
/// Errors: corrupt (nobody has written and sealed it).
Result<Confinement> read_confinement(int file);

/// Enters the container: its namespaces, its directory, and no more rights than `confinement`. This
/// process is then as if it had begun in it, but for what it has open; the handles are closed.
/// Errors: denied, io. After one it may be in the container with rights of the node: all that is
/// left to do is to end.
Result<void> join(const Handles& handles, const Confinement& confinement);

}  // namespace berth::spank
