// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::sys {

/// The ids of this process.
struct Identity {
  uid_t uid = 0;  ///< real
  gid_t gid = 0;
  uid_t effective_uid = 0;
  gid_t effective_gid = 0;
  std::vector<gid_t> groups;            ///< supplementary
  bool initial_user_namespace = false;  ///< in this user namespace root is root of the machine
};

/// Errors: io.
Result<Identity> identity();

/// getuid(2), geteuid(2), getegid(2)
uid_t real_uid();
uid_t effective_uid();
gid_t effective_gid();

/// Whether this is the user namespace that the machine booted with, by the inode of
/// /proc/self/ns/user (an identity uid_map proves nothing: user namespaces of podman and lxd may
/// have one). The map decides only if /proc does not show namespaces.
bool in_initial_user_namespace();

struct Account {
  std::string name;
  std::string uid;
  std::string home;
};
/// The account with this name or uid, from /etc/passwd, else from the system's name service through
/// getent(1). On a machine without getent only the file is used.
/// Errors: interrupted (the name service does not answer), io (it cannot be asked).
Result<std::optional<Account>> find_account(const std::string& name_or_uid);

/// The name that find_account() finds; "" if there is none or the name service does not answer.
std::string user_name(uid_t uid);

/// The names of the groups, from /etc/group, else from the name service. Groups without a name are
/// left out.
/// Errors: as find_account().
Result<std::vector<std::string>> group_names(const std::vector<gid_t>& groups);

}  // namespace berth::sys
