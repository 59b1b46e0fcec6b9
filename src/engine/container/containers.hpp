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

// Processes of a container may have other ids than its user. From a user namespace of our own we
// could not signal them: the kernel lets their user do it from outside, who has made theirs.
// So removing has two steps, and a verb enters its namespace between the two.

struct EndOptions {
  bool force = false;  ///< kill it where it runs
};
/// Ends what there is of a container but its files; gives its id.
/// Errors: not_found, busy (it runs and `force` is not set).
Result<std::string> end_container(const Context& context, std::string_view reference,
                                  EndOptions options);

enum class AnonymousVolumes { keep, remove };
/// Removes the container `id` after end_container(); one that removes itself is fine.
/// Errors: busy (another process has it), io.
Result<void> remove_container(const Context& context, const std::string& id,
                              AnonymousVolumes volumes);

/// The same for a container that gives its name, all of it, to a new one: none of that name is
/// fine.
Result<void> end_replaced(const Context& context, const std::string& name);
Result<void> remove_replaced(const Context& context, const std::string& name);

/// What sweep() does (engine/container/sweep.hpp), for one container.  Errors: not_found, io.
Result<void> adopt_container(const Context& context, std::string_view reference);

/// Sends signal `number`.  Errors: not_found, usage (it does not run).
Result<void> kill_container(const Context& context, std::string_view reference, int number);

/// The container's stop signal, and KILL after `grace` seconds (-1: never), else after those of its
/// --stop-timeout, else after ten, as docker does; a container that has ended is fine. Errors:
/// not_found.
Result<void> stop_container(const Context& context, std::string_view reference,
                            std::optional<int64_t> grace);

/// Freezes or thaws all processes of a running container.
/// Errors: not_found, usage (it does not run, it is (not) paused), unsupported (no freezer).
Result<void> pause_container(const Context& context, std::string_view reference);
Result<void> unpause_container(const Context& context, std::string_view reference);

/// Errors: not_found, exists (the name), usage (no name).
Result<void> rename_container(const Context& context, std::string_view reference,
                              std::string_view name);

/// Waits for the end and gives the exit status.  Errors: not_found, io.
Result<int> wait_container(const Context& context, std::string_view reference);

}  // namespace berth::engine
