// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"

namespace berth::sys {

/// Maps the `count` ids that begin at `inside` to the host's ids that begin at `outside`.
struct IdRange {
  uint32_t inside = 0;
  uint32_t outside = 0;
  uint32_t count = 0;
  bool operator==(const IdRange&) const = default;
};

/// The id mapping of an ordinary user's namespace. The user is always id 0 inside. With subordinate
/// ids there are also the ids from 1 on. Without them, `uids` and `gids` have one entry each.
struct IdMapping {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string user;  ///< the name, or the uid if there is no name
  std::vector<IdRange> uids;
  std::vector<IdRange> gids;
  bool full() const { return uids.size() > 1 && gids.size() > 1; }
};

/// The subordinate ranges of `user` or of `id` in `text`, the content of /etc/subuid or
/// /etc/subgid, in the order of the file, at most 64. Malformed lines and ranges over 2^32 are
/// skipped. Pure.
std::vector<IdRange> parse_subordinate_ids(std::string_view text, std::string_view user,
                                           uint32_t id);

/// Plans the mapping of a user from /etc/subuid and /etc/subgid. If a file or a line for the user
/// is missing, the mapping is not full. Ranges that overlap the user's own id or one another are
/// skipped.
/// Errors: io (a file over 16 MiB, or unreadable).
Result<IdMapping> plan_mapping(uid_t uid, gid_t gid, const std::string& user);

enum class UserNamespaceKind {
  initial,  ///< no namespace was entered
  mapped,   ///< with subordinate ids
  single,   ///< with only the user's own id: files cannot have other owners, setgroups is disabled
};

/// Moves the calling process, which must have a single thread, into a new user namespace and a new
/// mount namespace. The mounts there are slaves of the host's, so new mounts do not propagate to
/// the host. The process has id 0 and all capabilities there; it keeps its working directory and
/// supplementary groups. With a full mapping the system's newuidmap and newgidmap write the maps
/// (about 2 ms). If these are missing or refuse, a warning in `log` says what to install or to
/// check, and the single id is used instead. A child makes and maps the namespace first, so that an
/// error leaves the caller as it was. Errors: unsupported (user namespaces are disabled or used up;
/// the hint names the sysctl), denied (a chroot or another sandbox), io. Source:
/// user_namespaces(7), newuidmap(1).
Result<UserNamespaceKind> enter_user_namespace(const IdMapping& mapping, Log& log);

/// Makes newuidmap and newgidmap write the maps of the new user namespace of process `pid`, which
/// belongs to the caller.
/// Errors: not_found (the programs are not installed), denied (they refuse; the error has their
/// message). newuidmap(1)
Result<void> map_by_helpers(pid_t pid, const std::vector<IdRange>& uids,
                            const std::vector<IdRange>& gids);

/// The ids that our user namespace maps; `outside` are the ids in the parent namespace.
/// Errors: io, corrupt.  user_namespaces(7)
Result<std::vector<IdRange>> mapped_uids();
Result<std::vector<IdRange>> mapped_gids();

/// Moves the calling process, which must have a single thread, into the user namespace of `process`
/// and a new mount namespace, as enter_user_namespace() does. Of nested user namespaces it enters
/// the outermost one below our own. The user that created the namespace may do this. If
/// `start_time` is given, the process must have that start time (process_start_time()). Errors:
/// not_found (no such process), denied. setns(2)
Result<void> join_user_namespace(pid_t process, std::optional<uint64_t> start_time = {});

}  // namespace berth::sys
