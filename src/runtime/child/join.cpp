// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/join.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/child/host_descriptors.hpp"
#include "runtime/child/namespaces.hpp"
#include "runtime/state/protocol.hpp"
#include "sys/file/file.hpp"
#include "sys/process/program.hpp"
#include "sys/process/pty.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

// All handles are opened before the first namespace changes what the paths and rights mean; the
// user namespace comes first because it gives the right to join those that it owns.
Result<void> join_namespaces(Inside& inside, const plan::Spawn& spawn) {
  std::vector<std::pair<sys::Fd, const oci::Namespace*>> spaces;
  for (const auto& space : spawn.joined) {
    if (inside.prepared.born_into.types.contains(space.type)) continue;
    sys::Fd fd = TRY(sys::open_at(sys::cwd(), space.path, O_RDONLY));
    if (TRY(is_own_namespace(fd, space))) inside.shared.insert(space.type);
    if (space.type == "mount") {
      inside.mount_space = std::move(fd);
    } else {
      spaces.emplace_back(std::move(fd), &space);
    }
  }
  std::stable_partition(spaces.begin(), spaces.end(),
                        [](const auto& entry) { return entry.second->type == "user"; });
  for (const auto& [fd, space] : spaces) {
    TRY(sys::setns(fd, namespace_flag(space->type), space->path));
  }
  return {};
}

Result<void> fork_again(Inside& inside, uint64_t namespaces) {
  sys::Cloned child = TRY(sys::clone3(CLONE_PARENT | namespaces, -1));
  if (child.pid == 0) {
    ignore(sys::new_session());  // as in apply()
    return sys::die_with_parent(SIGKILL);
  }
  auto told = inside.channel.send(Message::born, {}, child.pid, child.pidfd);
  ::_exit(told.ok() ? 0 : kEngineFailed);
}

/// In a user namespace that was just entered: new files belong to its root from here on.
Result<void> be_root(const plan::Plan& plan) {
  const auto* identity = plan::find<plan::SetIdentity>(plan);
  bool keep = identity != nullptr && identity->keep_groups;
  return keep ? sys::set_ids(0, 0) : sys::set_identity(0, 0, {});
}

}  // namespace

Result<void> enter_namespaces(const plan::Plan& plan, Inside& inside, const plan::Spawn& step) {
  if (!step.uid_mappings.empty()) {
    inside.time_offsets = TRY(inside.channel.expect_passed(Message::ids_mapped)).passed;
  }
  TRY(join_namespaces(inside, step));
  if (joins_user_namespace(step)) TRY(fork_again(inside, created_namespaces(step)));
  if (!changes_user_namespace(step)) return {};
  if (!step.keep_ids) TRY(be_root(plan));
  TRY(sys::forbid_tracing());  // a change of identity resets it
  uint64_t late = late_namespaces(step);
  return late == 0 ? Result<void>() : sys::unshare(static_cast<int>(late), "ipc namespace");
}

Result<void> join_container(const plan::Plan& plan, Inside& inside,
                            const plan::JoinContainer& step) {
  const Joined& joined = *inside.prepared.joined;
  // The container sees this process once it is in its pid namespace. Until then it stays outside,
  // and when it enters it holds neither a root nor a descriptor of the host, which CAP_SYS_PTRACE
  // in the container could reach through (CVE-2016-9962).
  TRY(sys::forbid_tracing());
  if (joined.namespaces != 0) {
    TRY(sys::setns(joined.first_process, joined.namespaces, "of the container"));
  }
  if (joined.root) TRY(sys::change_root(joined.root, "/"));
  TRY(close_host_descriptors(inside));
  if (joined.forks_again()) TRY(fork_again(inside, 0));
  if (!step.keep_ids && (joined.namespaces & CLONE_NEWUSER)) TRY(be_root(plan));
  TRY(sys::forbid_tracing());  // a change of identity resets it
  inside.root = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  return {};
}

}  // namespace berth::runtime
