// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: nothing; the child is ours until it
// executes the container's program.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runtime/cgroup.hpp"
#include "runtime/inside.hpp"
#include "runtime/protocol.hpp"
#include "sys/process.hpp"

/// What the parent of a process that carries out a plan does for it.
namespace berth::runtime {

struct Child {
  sys::Process process;
  Channel channel{sys::Fd()};
  bool in_cgroup = false;     ///< it was born in the v2 directory
  bool moves_itself = false;  ///< into those of v1, before all else
  sys::Process first_born{};  ///< what was cloned, where that made `process` in its place
  /// What `process` said before we had heard of it.
  std::deque<Channel::Incoming> early{};

  /// The next message, or nothing when the other end is closed. Errors: as Channel::receive().
  Result<std::optional<Channel::Incoming>> receive();
};

/// Makes the process, which goes through the steps from Spawn or JoinContainer on. `namespaces` are
/// CLONE_NEW*; to be born in the v2 directory of `cgroups` is only a wish, and so is that the child
/// moves itself into those of v1: add_to_cgroups() does what is left.
Result<Child> make_child(const plan::Plan& plan, const Prepared& prepared, uint64_t namespaces,
                         const CgroupSet& cgroups);

/// The same in the birth place of `spawn`, where it has one (is_born_into_others()): by a process
/// that enters it, makes the child as one of ours, and ends. So this process stays where it is, and
/// hooks run outside of the container's pid namespace.
/// Errors: not_found, denied (a namespace), interrupted.
Result<Child> make_child_in(const plan::Plan& plan, Prepared& prepared, const plan::Spawn& spawn,
                            uint64_t namespaces, const CgroupSet& cgroups);

/// Moves the child's process, `child.process`, where it is not yet. Errors: as CgroupSet::add().
Result<void> add_to_cgroups(const Child& child, const CgroupSet& cgroups);

/// Where the child joins a namespace that counts for its children only, it makes another in its
/// place: waits to hear of that. The new one may be faster than the news: what it says meanwhile is
/// kept for receive(). Errors: interrupted (both have ended; why is what receive() gives).
Result<void> await_second_fork(Child& child);

/// Makes room in `prepared` for the seccomp program that the plan asks for.
/// Errors: corrupt, unsupported (a flag that is unknown).
Result<void> prepare_filter(const plan::Plan& plan, Prepared& prepared);
struct FilterSize {
  int64_t instructions = 0;  ///< none: the plan asks for no filter
};
/// Compiles it into that room, which the child sees. Errors: corrupt (the profile).
Result<FilterSize> write_filter(const plan::Plan& plan, const Prepared& prepared);
/// Tells the child that it is where it belongs, and its filter there.
void tell_confined(const Channel& channel, FilterSize filter);

/// Places the child and hears it out. When it has ended before it was placed, its own report is the
/// reason, and that it cannot be found any more only a consequence.
Result<void> settle(const Child& child, const std::function<Result<void>()>& place,
                    const std::function<Result<void>()>& attend);

/// Sends a descriptor to the socket at `path`, with a name as runc's protocol wants it.
Result<void> hand_over(const std::string& path, const sys::Fd& passed, std::string_view name);

}  // namespace berth::runtime
