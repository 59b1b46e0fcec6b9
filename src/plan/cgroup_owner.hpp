// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "oci/runtime_spec.hpp"

namespace berth::plan {

/// The user of this machine that becomes the owner of the container's cgroup, so that the container
/// can make child cgroups: the one to which process.user.uid is mapped. None unless the container
/// has a new cgroup namespace, a new user namespace and /sys/fs/cgroup mounted for writing. Pure.
/// Source: runtime-spec config-linux.md "Cgroup ownership".
std::optional<uint32_t> cgroup_owner(const oci::Spec& spec);

}  // namespace berth::plan
