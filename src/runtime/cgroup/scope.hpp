// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile input: none; berth-scope is our own
// program, and systemd belongs to the machine.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "plan/plan.hpp"
#include "scope/request.hpp"

namespace berth::runtime {

/// `resources` without the devices, as properties of a unit. Limits without a property in systemd
/// are left out: the caller writes all limits into the directory as well. Pure. Errors: those of
/// v2_writes(). Source: systemd.resource-control(5).
Result<std::vector<scope::Property>> scope_limits(const oci::Resources& resources);

/// `rules` as a list of allowed devices, the only form that systemd takes. Nothing if the rules
/// cannot be written as such a list: the last rule for all devices allows them, or a later rule
/// denies some. Pure.
/// Errors: corrupt (as compile_device_filter()).
Result<std::optional<std::vector<scope::Device>>> scope_devices(
    const std::vector<oci::DeviceRule>& rules);

/// Adds the host's path of each device in `list` if `nodes` has it: before version 240 systemd
/// looks for the file /dev/char/195:0, which does not exist for NVIDIA's devices. A path counts
/// only if it is the device itself, not a link to it.
void add_names(std::vector<scope::Device>& list, const std::vector<plan::HostNode>& nodes);

/// The directory of the user's own manager, "/run/user/1000", from XDG_RUNTIME_DIR or from the uid;
/// nothing if no manager listens there. Source: systemd's user-runtime-dir@.service.
std::optional<std::string> user_manager();

/// A scope that systemd has made.
struct StartedScope {
  std::string control_group;      ///< "/system.slice/berth-c1.scope", below the mounts of cgroups
  bool declares_devices = false;  ///< systemd enforces the device rules, now and after a reload
};

/// Makes systemd create the scope of `wanted` and move the process `pid` into it, in all
/// hierarchies.
/// Errors: not_found (no berth-scope), exists (the unit), denied, interrupted (the process ended,
/// systemd does not answer), those of the functions above. Nothing is left after an error.
Result<StartedScope> start_scope(const plan::MakeCgroup& wanted, pid_t pid, const std::string& id);

/// Makes systemd move a process into the scope, even from a cgroup out of which the caller may not
/// move it: a user's manager asks the machine's manager.
Result<void> attach_to_scope(const std::string& unit, bool user, pid_t pid);

/// Tells systemd about new limits, so that a reload of systemd does not restore the old ones.
Result<void> update_scope(const std::string& unit, bool user, const oci::Resources& resources);

/// Kills the processes that are left in the scope and waits until systemd has removed it; a missing
/// scope is fine.
Result<void> stop_scope(const std::string& unit, bool user);

}  // namespace berth::runtime
