// SPDX-License-Identifier: Apache-2.0
// Whether a task joins: spank_berth.cpp.
// Runs as: a Slurm task that has become the user but not yet executed the user's program.
// Capabilities: those of the user. Hostile: the data from the socket, which a task inside the
// container could send instead of berth-hold. The data is bounded, and can harm only the user.
#pragma once

#include <linux/filter.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "slurm/hold.hpp"

namespace berth::spank {

/// The descriptors of a container for a task that joins it; -1: the container does not have this
/// one.
struct Handles {
  slurm::HoldAnswer answer;
  int fds[slurm::kHandles] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int fd(slurm::Handle handle) const;
};

/// Sends a request on `step` and waits until the container exists. Nothing: there will be no
/// container.
/// Errors: io, corrupt (not an answer).
Result<std::optional<Handles>> ask(int step);

/// Calls `set` for each variable of the container.  Errors: corrupt (more than 8 MiB), and those of
/// `set`.
Result<void> import_environment(
    const Handles& handles,
    const std::function<Result<void>(const char* name, const char* value)>& set);

/// The limits on the processes of the container.
struct Confinement {
  slurm::Rights rights;
  std::vector<sock_filter> program;
};
/// Reads the limits from the step's slurm::kRightsFile, which no process in the container can
/// change. Errors: corrupt (the file was not written and sealed).
Result<Confinement> read_confinement(int file);

/// Enters the namespaces and the working directory of the container, and applies the limits of
/// `confinement`. This process is then like one started inside, except for its open descriptors.
/// The handles are closed. Errors: denied, io. After an error the process may be in the container
/// with more rights than the container allows: the caller must only exit.
Result<void> join(const Handles& handles, const Confinement& confinement);

}  // namespace berth::spank
