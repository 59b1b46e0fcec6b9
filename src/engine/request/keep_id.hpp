// SPDX-License-Identifier: Apache-2.0
// --userns keep-id: the caller has his own number in the container (docs/decisions/0095).
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

/// Who the caller is in such a container, and the maps of its user namespace, which lies in ours.
struct KeptIds {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string name;  ///< the caller's; empty where he has none
  std::vector<oci::IdMapping> uids;
  std::vector<oci::IdMapping> gids;
};

/// Maps `kept` to 0 of our user namespace, which is the caller, and 0 to what `kept` is there, or
/// to the last id; all others stay the same. With a single id that is all there is. Pure.
std::vector<oci::IdMapping> swap_with_root(const std::vector<sys::IdRange>& here, uint32_t kept);

/// Reads the maps of this user namespace for the --userns of `request`, a keep-id.
/// Errors: usage (root of the machine, namespaces of another container), io.
Result<KeptIds> keep_ids(const Context& context, const RunRequest& request);

/// An ordinary user's `-u $(id -u):$(id -g)` means keep-id where no --userns is given: Docker's
/// container has his files then, and a subordinate id would not. Nothing changes for root, and
/// where a namespace of another container is joined.
void keep_own_id(const Context& context, RunRequest& request);

/// The image's /etc/passwd and /etc/group with a line for the caller where his number has none. An
/// empty text, of an image without the file, stays empty. `home`: absolute. Pure.
std::string with_account(std::string_view passwd, const KeptIds& ids, std::string_view home);
std::string with_group(std::string_view group, const KeptIds& ids);

// A user's ids may be absent from this user namespace. These functions find that out before
// anything is made; setresuid(2) says only "Invalid argument", after it.

/// Whether this user namespace has the user's and the group's id of `user`. Errors: io.
Result<bool> has_ids(const oci::ContainerUser& user);

/// The error for whom `wish` names and has_ids() has not.
Error no_such_ids(std::string_view wish);

/// Leaves out the further groups that this user namespace has no ids for, with a warning for each:
/// nobody has asked for them, /etc/group lists the user. Errors: io.
Result<void> leave_out_groups(const Context& context, oci::ContainerUser& user);

/// Of groups that were asked for. Errors: denied (this user namespace lacks one), io.
Result<void> require_groups(const std::vector<uint32_t>& groups);

}  // namespace berth::engine
