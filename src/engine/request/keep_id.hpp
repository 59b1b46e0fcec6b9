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

/// The caller's ids in such a container, and the maps of its user namespace, a child of ours.
struct KeptIds {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string name;  ///< the caller's; empty if there is none
  std::vector<oci::IdMapping> uids;
  std::vector<oci::IdMapping> gids;
};

/// Maps id `kept` of the container to id 0 of our user namespace, which is the caller, and 0 to
/// `kept` of ours, or to the last id if ours lacks it; all others stay the same. With a single id
/// there are no others. Pure.
std::vector<oci::IdMapping> swap_with_root(const std::vector<sys::IdRange>& here, uint32_t kept);

/// Reads the maps of this user namespace for the --userns of `request`, a keep-id.
/// Errors: usage (root of the machine, namespaces of another container), io.
Result<KeptIds> keep_ids(const Context& context, const RunRequest& request);

/// An ordinary user's `-u $(id -u):$(id -g)` without --userns means keep-id: files that the
/// container writes then belong to the caller, as with Docker, not to a subordinate id. Changes
/// nothing for root, or if a namespace of another container is joined.
void keep_own_id(const Context& context, RunRequest& request);

/// The image's /etc/passwd and /etc/group, with a line for the caller if none has the caller's id.
/// An empty text (the image has no such file) stays empty. `home`: absolute. Pure.
std::string with_account(std::string_view passwd, const KeptIds& ids, std::string_view home);
std::string with_group(std::string_view group, const KeptIds& ids);

// A user's ids may be absent from this user namespace. These functions check that before anything
// is created; setresuid(2) would report only "Invalid argument", and later.

/// Whether this user namespace has the uid and the gid of `user`. Errors: io.
Result<bool> has_ids(const oci::ContainerUser& user);

/// The error for the user `wish` if has_ids() is false.
Error no_such_ids(std::string_view wish);

/// Removes the supplementary groups that this user namespace has no ids for, with a warning for
/// each. They come from /etc/group, not from a flag. Errors: io.
Result<void> leave_out_groups(const Context& context, oci::ContainerUser& user);

/// Checks groups that a flag names. Errors: denied (this user namespace lacks one), io.
Result<void> require_groups(const std::vector<uint32_t>& groups);

}  // namespace berth::engine
