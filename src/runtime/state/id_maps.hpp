// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile input: none; the kernel checks the
// maps.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// Writes the maps of the user namespace that process `pid` has made.
/// Errors: denied (ids that the caller may not give away). user_namespaces(7)
Result<void> write_id_maps(pid_t pid, const std::vector<oci::IdMapping>& uids,
                           const std::vector<oci::IdMapping>& gids);

/// A user namespace with these maps and no process; the kernel frees it with its last reference.
Result<sys::Fd> make_user_namespace(const std::vector<oci::IdMapping>& uids,
                                    const std::vector<oci::IdMapping>& gids);

}  // namespace berth::runtime
