// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile input: none; the environment comes
// from the caller.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "plan/cgroup.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/state/find.hpp"

namespace berth::runtime {

/// The scope that systemd has to make for a container of our engine; nothing if we make the cgroup.
///
/// An ordinary user gets a scope of the user's own manager if a limit is asked for, the machine has
/// only cgroup v2, and the caller's cgroup was not delegated by others (a service of the machine
/// with Delegate=, another container). Root gets a scope of the machine's manager if cgroupsPath
/// begins with a slice. Errors: usage (an impossible slice name).
/// docs/decisions/0179
Result<std::optional<plan::SystemdScope>> scope_for(const oci::Spec& spec);

/// The members of linux.resources that ask for a limit, without devices: {"memory.limit"}, which
/// also means swap.
/// Errors: those of v2_writes().
Result<std::vector<std::string>> asked_limits(const oci::Resources& resources);

/// Moves a running container without a cgroup into a scope of the user's own manager, so that it
/// can be paused or limited. Does nothing if `found` has a cgroup or its engine did not ask for
/// scopes. Errors: unsupported (processes with other ids than the caller's, which systemd does not
/// move; a pid namespace that the container shares with others), those of start_scope().
Result<void> give_scope(Found& found);

}  // namespace berth::runtime
