// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::plan {

/// Which systemd makes a container's cgroup.
enum class SystemdManager { none, system, user };

/// The unit that stands for a container.
struct SystemdScope {
  std::string slice;  ///< "system.slice"
  std::string unit;   ///< "berth-c1.scope"
  bool user = false;  ///< of the caller's own manager
};

/// Reads a linux.cgroupsPath of the form "slice:prefix:name". An empty path is the slice of the
/// manager, "berth" and `id`; an empty slice is the manager's own one too; without a prefix the
/// unit is "name.scope". Pure. Errors: usage (not three parts; a name that no unit can have),
/// without the name of the member. Source: runc docs/systemd.md; systemd.unit(5) and
/// systemd.slice(5) for the names.
Result<SystemdScope> parse_systemd_scope(const std::string& path, const std::string& id,
                                         SystemdManager manager);

}  // namespace berth::plan
