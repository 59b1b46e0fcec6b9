// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: nothing; the environment is the
// caller's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "plan/systemd_scope.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/state/find.hpp"

namespace berth::runtime {

/// The scope that systemd is to make for a container of our engine; nothing where the cgroup is
/// made by us.
///
/// For an ordinary user that is one of his own manager, where a limit is asked for, cgroup v2 is
/// all there is and the cgroup that the caller is in was not given to him by somebody else (a
/// service of the machine with Delegate=, another container). For root it is one of the machine's
/// manager, where the path begins with a slice. Errors: usage (a slice that there cannot be).
/// docs/decisions/0179
Result<std::optional<plan::SystemdScope>> scope_for(const oci::Spec& spec);

/// The members of linux.resources that ask for a limit, devices left out: {"memory.limit"}, which
/// stands for swap, too.
/// Errors: those of v2_writes().
Result<std::vector<std::string>> asked_limits(const oci::Resources& resources);

/// Puts a running container that has none into a scope of the user's own manager, because it is to
/// be paused or to get a limit. Nothing happens where `found` has a cgroup or its engine did not
/// ask for scopes. Errors: unsupported (processes with other ids than the caller's, which systemd
/// does not move; a pid namespace that it shares with others), those of start_scope().
Result<void> give_scope(Found& found);

}  // namespace berth::runtime
