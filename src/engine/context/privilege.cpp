// SPDX-License-Identifier: Apache-2.0
#include "engine/context/privilege.hpp"

#include <algorithm>

#include "gpu/inventory/state_directory.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::engine {
namespace {

// For root of a user namespace that another process made (unshare -r, a container): the size of the
// id map decides.
Identity identity_of_map() {
  auto map = sys::mapped_gids();
  if (!map.ok()) return Identity::single;
  uint64_t ids = 0;
  for (const sys::IdRange& range : *map) ids += range.count;
  return ids > 1 ? Identity::mapped : Identity::single;
}

}  // namespace

std::optional<unsigned> calling_user() {
  return gpu::calling_user();
}

Caller who_calls() {
  Caller out;
  out.uid = calling_user().value_or(0);
  auto who = sys::identity();
  if (!who.ok()) return out;
  out.groups_known = who->initial_user_namespace;
  out.groups.push_back(who->gid);
  for (gid_t group : who->groups) {
    if (std::ranges::find(out.groups, group) == out.groups.end()) {
      out.groups.push_back(group);
    }
  }
  return out;
}

Result<Identity> enter_identity(Needs needs, Log& log) {
  sys::Identity who = TRY(sys::identity());
  if (who.effective_uid == 0) {
    return who.initial_user_namespace ? Identity::root : identity_of_map();
  }
  if (needs == Needs::root) return make_error(Kind::denied, "only root may do this", "sudo");
  sys::IdMapping mapping = TRY(sys::plan_mapping(who.uid, who.gid, sys::user_name(who.uid)));
  if (needs == Needs::nothing) return mapping.full() ? Identity::mapped : Identity::single;
  switch (TRY(sys::enter_user_namespace(mapping, log))) {
    case sys::UserNamespaceKind::initial:
      return Identity::root;
    case sys::UserNamespaceKind::mapped:
      return Identity::mapped;
    case sys::UserNamespaceKind::single:
      return Identity::single;
  }
  return Identity::single;
}

Result<Identity> join_user_namespace(int64_t process, std::optional<uint64_t> start_time) {
  sys::Identity who = TRY(sys::identity());
  if (who.effective_uid == 0) {
    return who.initial_user_namespace ? Identity::root : identity_of_map();
  }
  TRY(sys::join_user_namespace(static_cast<pid_t>(process), start_time));
  return identity_of_map();
}

bool in_foreign_namespace() {
  return sys::effective_uid() == 0 && !sys::in_initial_user_namespace();
}

}  // namespace berth::engine
