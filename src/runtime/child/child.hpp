// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile input: none; the child is ours until
// it executes the container's program, and the agent at listenerPath belongs to the caller.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/child/inside.hpp"
#include "runtime/state/protocol.hpp"
#include "runtime/state/state.hpp"
#include "sys/process/process.hpp"

/// The work of the parent of a process that carries out a plan.
namespace berth::runtime {

struct Child {
  sys::Process process;
  Channel channel{sys::Fd()};
  bool in_cgroup = false;     ///< CLONE_INTO_CGROUP put the process into the v2 directory
  bool moves_itself = false;  ///< the process moves itself into the v1 cgroups, before all else
  sys::Process first_born{};  ///< the process that we cloned, if that one cloned `process`
  /// Messages of `process` that arrived before we knew of it.
  std::deque<Channel::Incoming> early{};

  /// The next message, or nothing when the other end is closed. Errors: as Channel::receive().
  Result<std::optional<Channel::Incoming>> receive();
};

/// Makes the process that executes the steps from Spawn or JoinContainer on. `namespaces` are
/// CLONE_NEW*. The process starts in the v2 directory of `cgroups` (CLONE_INTO_CGROUP) and moves
/// itself into the v1 directories, both if possible; add_to_cgroups() does the rest.
Result<Child> make_child(const plan::Plan& plan, const Prepared& prepared, uint64_t namespaces,
                         const CgroupSet& cgroups);

/// The same if the process has to be born into existing namespaces (is_born_into_others()): a
/// helper process enters them, makes the child as a child of ours, and ends. So this process stays
/// in its own namespaces, and hooks run outside of the container's pid namespace.
/// Errors: not_found, denied (a namespace), interrupted.
Result<Child> make_child_in(const plan::Plan& plan, Prepared& prepared, const plan::Spawn& spawn,
                            uint64_t namespaces, const CgroupSet& cgroups);

/// Moves `child.process` into the cgroups that it is not in yet. Errors: as CgroupSet::add().
Result<void> add_to_cgroups(const Child& child, const CgroupSet& cgroups);

/// A child that joins a namespace which affects only its children makes another process in its
/// place; waits for the message about that. Messages of the new process may arrive before that
/// message: they are kept for receive(). Errors: interrupted (both have ended; receive() has the
/// reason).
Result<void> await_second_fork(Child& child);

/// Reserves room in `prepared` for the seccomp program of the plan.
/// Errors: corrupt, unsupported (a flag that is unknown).
Result<void> prepare_filter(const plan::Plan& plan, Prepared& prepared);
struct FilterSize {
  int64_t instructions = 0;  ///< none: the plan asks for no filter
};
/// Compiles the program into that room, which the child shares. Errors: corrupt (the profile).
Result<FilterSize> write_filter(const plan::Plan& plan, const Prepared& prepared);
/// Tells the child that its cgroups and its filter are ready.
void send_confined(const Channel& channel, FilterSize filter);

/// Calls `place`, which moves the child into its cgroups, then `attend`, which answers its
/// messages. If `place` fails and the child has reported an error, the result is that error: it is
/// the cause.
Result<void> place_and_attend(const Child& child, const std::function<Result<void>()>& place,
                              const std::function<Result<void>()>& attend);

/// Sends a descriptor to the socket at `path`, with a name as runc's protocol requires.
Result<void> hand_over(const std::string& path, const sys::Fd& passed, std::string_view name);

/// Passes descriptor `number` of the child, its seccomp listener, to the agent at
/// linux.seccomp.listenerPath, together with the state of the container (`status` in it), and lets
/// the child continue. Errors: not_found, denied, io (no agent listens there).
/// Source: runtime-spec config-linux.md "The Container Process State", seccomp_unotify(2).
Result<void> pass_listener(const plan::LoadSeccomp& step, const State& state,
                           std::string_view status, const Child& child, int64_t number);

}  // namespace berth::runtime
