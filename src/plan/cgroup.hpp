// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::plan {

/// Which systemd makes a container's cgroup.
enum class SystemdManager { none, system, user };

/// The unit of a container.
struct SystemdScope {
  std::string slice;  ///< "system.slice"
  std::string unit;   ///< "berth-c1.scope"
  bool user = false;  ///< of the caller's user manager
};

/// Parses a linux.cgroupsPath of the form "slice:prefix:name". An empty path means the default
/// slice of the manager, the prefix "berth" and the name `id`. An empty slice means the default
/// slice, too. Without a prefix the unit is "name.scope". Pure. Errors: usage (not three parts; an
/// invalid unit name); does not name the member. Source: runc docs/systemd.md; systemd.unit(5) and
/// systemd.slice(5) for the names.
Result<SystemdScope> parse_systemd_scope(const std::string& path, const std::string& id,
                                         SystemdManager manager);

/// The scope for a linux.cgroupsPath that the engine has written: "berth-c1" is a scope in the
/// default slice of the manager, "a-b.slice/berth-c1" one in a-b.slice. Nothing if the parent in
/// the path is not a slice. Pure. Errors: usage (an impossible slice).
Result<std::optional<SystemdScope>> scope_of_path(const std::string& path, SystemdManager manager);

/// The user of this machine that becomes the owner of the container's cgroup, so that the container
/// can make child cgroups. It is the user to which process.user.uid is mapped. None unless the
/// container has a new cgroup namespace, a new user namespace and /sys/fs/cgroup mounted for
/// writing. Pure.
/// Source: runtime-spec config-linux.md "Cgroup ownership".
std::optional<uint32_t> cgroup_owner(const oci::Spec& spec);

}  // namespace berth::plan
