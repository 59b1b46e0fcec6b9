// SPDX-License-Identifier: Apache-2.0
// --userns keep-id: the caller keeps their own id in the container (docs/decisions/0095).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/runtime_spec.hpp"
#include "oci/user.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::engine {

/// The ids of the caller in a container with keep-id, and the id maps of the container's user
/// namespace, a child of ours.
struct KeptIds {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string name;  ///< of the caller; empty if the caller has none
  std::vector<oci::IdMapping> uids;
  std::vector<oci::IdMapping> gids;
};

/// Maps id `kept` of the container to id 0 of our user namespace, which is the caller. Maps id 0 of
/// the container to id `kept` of our user namespace, or to its last id if it lacks `kept`. All
/// other ids stay the same; if our user namespace has a single id, there are no others. Pure.
std::vector<oci::IdMapping> swap_with_root(const std::vector<sys::IdRange>& here, uint32_t kept);

/// Computes the ids for the --userns keep-id of `request` from the maps of this user namespace.
/// Errors: usage (root of the machine, namespaces of another container), io.
Result<KeptIds> keep_ids(const Context& context, const RunRequest& request);

/// An ordinary user's `-u $(id -u):$(id -g)` without --userns means keep-id: then files that the
/// container writes belong to the caller, as with Docker, and not to a subordinate id. Changes
/// nothing for root, or if a namespace of another container is joined.
void keep_own_id(const Context& context, RunRequest& request);

/// The image's /etc/passwd or /etc/group with a line for the caller added, if no line has the id of
/// the caller. An empty string (the image has no such file) stays empty. `home`: absolute. Pure.
std::string with_account(std::string_view passwd, const KeptIds& ids, std::string_view home);
std::string with_group(std::string_view group, const KeptIds& ids);

// A user's ids may be absent from this user namespace. These functions check that before anything
// is created. Otherwise setresuid(2) would fail later, with only "Invalid argument".

/// Whether this user namespace has the uid and the gid of `user`. Errors: io.
Result<bool> has_ids(const oci::ContainerUser& user);

/// The error for the user `wish` if has_ids() is false.
Error no_such_ids(std::string_view wish);

/// Removes the supplementary groups that have no id in this user namespace, with a warning for
/// each. For groups from /etc/group, which no flag names. Errors: io.
Result<void> leave_out_groups(const Context& context, oci::ContainerUser& user);

/// Checks groups that a flag names. Errors: denied (this user namespace lacks a group), io.
Result<void> require_groups(const std::vector<uint32_t>& groups);

}  // namespace berth::engine
