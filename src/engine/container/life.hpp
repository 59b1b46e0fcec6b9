// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

// The processes and files of an ordinary user's container may have subordinate ids. The user owns
// the container's user namespace, and may therefore signal the processes from its parent namespace,
// but not from another child of that; removing the files needs such a child. So a removal has two
// steps, and a verb enters a user namespace of its own between end_container() and
// remove_container().

struct EndOptions {
  bool force = false;  ///< kill it if it runs
};
/// Ends everything of a container except its files; returns its id.
/// Errors: not_found, busy (it runs and `force` is not set).
Result<std::string> end_for_removal(const Context& context, std::string_view reference,
                                    EndOptions options);

enum class AnonymousVolumes { keep, remove };
/// Removes the container `id` after end_for_removal(); does nothing if the container removed
/// itself. Errors: busy (another process uses it), io.
Result<void> remove_container(const Context& context, const std::string& id,
                              AnonymousVolumes volumes);

/// The same two steps for a container that a new container of the same name replaces. They do
/// nothing if no container has exactly this name.
Result<void> end_replaced(const Context& context, const std::string& name);
Result<void> remove_replaced(const Context& context, const std::string& name);

/// Does what sweep() does (engine/container/sweep.hpp), for one container.  Errors: not_found, io.
Result<void> adopt_container(const Context& context, std::string_view reference);

/// Sends signal `number`.  Errors: not_found, usage (not running).
Result<void> kill_container(const Context& context, std::string_view reference, int number);

/// Sends the stop signal of its record (engine/run/new_container.cpp chose it), and KILL after
/// `grace` seconds (-1: never). Without `grace`, KILL follows after the container's --stop-timeout,
/// else after ten seconds, as with docker. Does nothing for a container that has ended. Errors:
/// not_found.
Result<void> stop_container(const Context& context, std::string_view reference,
                            std::optional<int64_t> grace);

/// Freezes or thaws all processes of a running container.
/// Errors: not_found, usage (not running, or already (not) paused), unsupported (no freezer).
Result<void> pause_container(const Context& context, std::string_view reference);
Result<void> unpause_container(const Context& context, std::string_view reference);

/// Errors: not_found, exists (the name), usage (no name).
Result<void> rename_container(const Context& context, std::string_view reference,
                              std::string_view name);

/// Waits for the end and returns the exit status.  Errors: not_found, io.
Result<int> wait_container(const Context& context, std::string_view reference);

}  // namespace berth::engine
