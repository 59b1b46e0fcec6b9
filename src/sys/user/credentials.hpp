// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::sys {

/// Changes to `uid`:`gid` with exactly `groups`, then reads all of it back and compares. If this
/// user namespace does not allow setgroups (because it maps a single id), the groups of the caller
/// stay, and a non-empty `groups` is denied.
/// Errors: denied, usage (an id that is not mapped here).  setgroups(2), setresgid(2), setresuid(2)
Result<void> set_identity(uid_t uid, gid_t gid, const std::vector<uint32_t>& groups);
/// As set_identity(), keeping the present supplementary groups.
Result<void> set_ids(uid_t uid, gid_t gid);

/// Keeps the permitted capabilities across the next change of uid. PR_SET_KEEPCAPS
Result<void> keep_capabilities();
/// Drops every capability that `set` lacks from the bounding set. PR_CAPBSET_DROP
Result<void> limit_bounding_set(uint64_t set);

struct CapabilitySets {
  uint64_t effective = 0;
  uint64_t permitted = 0;
  uint64_t inheritable = 0;
};
Result<CapabilitySets> capabilities();
/// capset(2)
Result<void> set_capabilities(const CapabilitySets& sets);
/// Makes `set` the ambient set. PR_CAP_AMBIENT
Result<void> set_ambient(uint64_t set);

/// PR_SET_NO_NEW_PRIVS
Result<void> forbid_new_privileges();
/// PR_SET_PDEATHSIG; 0 clears it. A change of identity clears it as well.
Result<void> die_with_parent(int signal);
/// PR_SET_DUMPABLE: sets it to 0, which keeps other processes of this user, and those inside the
/// container, from opening our descriptors through /proc.
Result<void> forbid_tracing();

/// Gives this process a new session keyring without keys. keyctl(2) KEYCTL_JOIN_SESSION_KEYRING
Result<void> make_session_keyring();

/// The hard limit of this process for RLIMIT_*; ~0 is RLIM_INFINITY. getrlimit(2)
Result<uint64_t> hard_limit(int resource);
/// prlimit(2); ~0 is RLIM_INFINITY.
Result<void> set_rlimit(int resource, uint64_t soft, uint64_t hard, const std::string& name);

/// Raises the soft limit of open files to the hard limit, because a deep tree needs a descriptor
/// per level. Children inherit it.
void allow_many_files();

}  // namespace berth::sys
