// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "record/record.hpp"

/// Finds and cleans up what killed processes and earlier boots have left of containers.
namespace berth::engine {

/// Replaces the lost monitors of running containers, and logs that; removes what killed owners and
/// earlier boots left: directories, names, runtime state and control groups of containers with --rm
/// and of containers that never ran. Records the end of other containers that a reboot ended,
/// without an exit status; does not start them again. Cheap when there is nothing to do.
void sweep(const Context& context);

/// Handles containers of killed owners, before a sweep() inside a user namespace: gives those that
/// run a new monitor, and removes the runtime state of the others. Cheap when nothing runs.
void end_orphans(const Context& context);

/// Does what sweep() does, for container `id`, after its holder and monitor were both killed, so
/// that its state is read correctly.
void recover(const Context& context, const std::string& id);

/// Does what sweep() does, for container `id`, from inside the container's user namespace.
/// Errors: not_found, io.
Result<void> adopt(const Context& context, const std::string& id);

/// Logs which containers got a new monitor from berth-holder: output that the old monitor had read
/// may be missing from the log.
void warn_of_adoptions(const Context& context);

/// Removes what a killed owner of container `id` left in the kernel and in berth-runtime's state.
/// Errors: those of berth-runtime.
Result<void> end_leftovers(const Context& context, const std::string& id);

/// Whether the first process of the start `start` is still alive.
bool is_alive_now(const record::Start& start);

}  // namespace berth::engine
