// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "record/record.hpp"

/// Finding and mending what processes that were killed, and earlier boots, have left of containers.
namespace berth::engine {

/// Gives containers that run but have lost their monitor a new one, and says so; removes what
/// killed owners and an earlier boot left: directories, names, runtime state and control groups of
/// --rm containers, and of containers that never came to run. Cheap when there is nothing.
void sweep(const Context& context);

/// Ends what runs of containers whose owner was killed, for a sweep() inside of a user namespace.
/// Cheap when nothing runs.
void end_orphans(const Context& context);

/// Holder and monitor of container `id` were both killed: the next command finds out what is
/// true.
void recover(const Context& context, const std::string& id);

/// What sweep() does, for container `id`; from inside of its user namespace.
/// Errors: not_found, io.
Result<void> adopt(const Context& context, const std::string& id);

/// Says which containers berth-holder has given a new monitor: what the old one had in its hands
/// may be missing from the log.
void warn_of_adoptions(const Context& context);

/// What a killed owner of container `id` has left to the kernel and to berth-runtime.
/// Errors: those of berth-runtime.
Result<void> end_leftovers(const Context& context, const std::string& id);

/// Whether the first process of that start still lives.
bool is_alive_now(const record::Start& start);

}  // namespace berth::engine
