// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime and the container's first process. Capabilities: the caller's. Hostile:
// paths of namespaces come from the config.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// CLONE_NEW* of the new namespaces that the process is born into. Not of the cgroup namespace: its
/// root is where the process is when it is made, so the process makes it later.
uint64_t created_namespaces(const plan::Spawn& spawn);
/// CLONE_NEW* of those that it makes itself as soon as it is root of another user namespace: the
/// message queues of an IPC namespace, the root of its mqueue, belong to whoever makes it.
uint64_t late_namespaces(const plan::Spawn& spawn);
/// Whether the process gets another user namespace than its caller's, new or joined.
bool changes_user_namespace(const plan::Spawn& spawn);

/// What is made in a user namespace belongs to it, and its root has rights over no other: where one
/// is joined, the new namespaces come after it, with a second birth.
bool joins_user_namespace(const plan::Spawn& spawn);

/// "net" for "network": its file in /proc/PID/ns.
std::string namespace_file(const std::string& type);
/// CLONE_NEW* of a type that can be joined before the root is entered, else 0.
int namespace_flag(std::string_view type);
/// Whether the namespace open as `fd` is the one that this process is in already.
Result<bool> is_own_namespace(const sys::Fd& fd, const oci::Namespace& space);
/// What the child, which joins the others itself, has to know of those that it was born into.
struct BornInto {
  std::set<std::string> types;
  std::set<std::string> shared;  ///< of these, those that are the caller's own
};

/// Whether the process has to be born into namespaces that there are already: into a pid namespace,
/// which counts for children only, and, where it gets another user namespace, into all that root of
/// it may not join.
bool is_born_into_others(const plan::Spawn& spawn);
/// Enters them with this process, which is to make the other one and to end: the way back needs
/// rights over the namespace that it comes from, which an ordinary user has not.
/// Errors: not_found, denied.
Result<BornInto> enter_birth_place(const plan::Spawn& spawn);

}  // namespace berth::runtime
