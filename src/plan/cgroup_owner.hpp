// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "oci/runtime_spec.hpp"

namespace berth::plan {

/// The user of this machine who shall own the container's cgroup, so that the container can make
/// cgroups of its own: the one that process.user.uid is mapped to. Nobody unless the container has
/// a new cgroup namespace, a new user namespace and /sys/fs/cgroup mounted for writing. Pure.
/// Source: runtime-spec config-linux.md "Cgroup ownership".
std::optional<uint32_t> cgroup_owner(const oci::Spec& spec);

}  // namespace berth::plan
