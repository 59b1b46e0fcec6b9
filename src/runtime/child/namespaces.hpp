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

/// CLONE_NEW* of the new namespaces that the process is born into. Not the cgroup namespace: its
/// root is the cgroup of the process at that moment, so the process makes it later.
uint64_t created_namespaces(const plan::Spawn& spawn);
/// CLONE_NEW* of the namespaces that the process makes itself as soon as it is root of another user
/// namespace: the root of the mqueue file system of an IPC namespace belongs to the process that
/// made the namespace.
uint64_t late_namespaces(const plan::Spawn& spawn);
/// Whether the process gets a user namespace, new or joined, other than the caller's.
bool changes_user_namespace(const plan::Spawn& spawn);

/// Whether the process joins a user namespace. New namespaces have to belong to that user
/// namespace, because its root has rights over no others. So they are made after joining, with a
/// second clone.
bool joins_user_namespace(const plan::Spawn& spawn);

/// CLONE_NEW* of a type that can be joined before the root is entered, else 0.
int namespace_flag(std::string_view type);
/// Whether the namespace open as `fd` is the one that this process is in already.
Result<bool> is_own_namespace(const sys::Fd& fd, const oci::Namespace& space);
/// The namespaces that the child was born into; it joins the others itself.
struct BornInto {
  std::set<std::string> types;
  std::set<std::string> shared;  ///< types whose namespace is the caller's own
};

/// Whether the process has to be born into existing namespaces: into a pid namespace, which affects
/// only children, and, if it gets another user namespace, into all namespaces that root of that one
/// may not join.
bool is_born_into_others(const plan::Spawn& spawn);
/// Makes the calling process, a helper, join those namespaces. It then creates the child and exits,
/// because returning needs rights over the old namespace, which an ordinary user lacks.
/// Errors: not_found, denied.
Result<BornInto> enter_birth_place(const plan::Spawn& spawn);

}  // namespace berth::runtime
