// SPDX-License-Identifier: Apache-2.0
// Whether a task joins: spank_berth.cpp.
// Runs as: a task of Slurm's after it became the user, before it executes the user's program.
// Capabilities: the user's. Hostile: the data from the socket, which a task inside the container
// could send instead of berth-hold; it is bounded, and concerns only the user.
#pragma once

#include <linux/filter.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "slurm/hold.hpp"

namespace berth::spank {

/// The handles of a container for a joining task; -1: there is no such handle.
struct Handles {
  slurm::HoldAnswer answer;
  int fds[slurm::kHandles] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int fd(slurm::Handle handle) const;
};

/// Sends a request on `step` and waits until the container exists. Nothing: there will be none.
/// Errors: io, corrupt (not an answer).
Result<std::optional<Handles>> ask(int step);

/// Calls `set` for each variable of the container.  Errors: corrupt (more than 8 MiB), and of set.
Result<void> import_environment(
    const Handles& handles,
    const std::function<Result<void>(const char* name, const char* value)>& set);

/// The limits of the container's processes.
struct Confinement {
  slurm::Rights rights;
  std::vector<sock_filter> program;
};
/// Reads it from slurm::kRightsFile of the step, which no process in the container can change.
/// Errors: corrupt (it was not written and sealed).
Result<Confinement> read_confinement(int file);

/// Enters the container: its namespaces, its directory, and the limits of `confinement`. This
/// process is then like one started inside, except for its open descriptors; the handles are
/// closed.
/// Errors: denied, io. After an error it may be in the container with rights of the node: the
/// caller must only exit.
Result<void> join(const Handles& handles, const Confinement& confinement);

}  // namespace berth::spank
