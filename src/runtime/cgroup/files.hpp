// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// A file of a cgroup takes a value in one write, or refuses it.
/// Errors: not_found (no such file), denied, io (the value; names it and the file).
Result<void> write_cgroup_file(const sys::Fd& directory, const std::string& name,
                               const std::string& value);

/// Whether this errno means missing permission: EACCES, EPERM, EROFS.
bool is_permission(int code);

/// Names of the cgroups in the cgroup `directory`; none when it cannot be read.
std::vector<std::string> child_cgroups(const sys::Fd& directory);

/// Calls `visit` with `directory` and every cgroup below it, at any depth: a container may make
/// more levels than we have descriptors or stack frames. Stops at the first error.
Result<void> visit_cgroups(const sys::Fd& directory,
                           const std::function<Result<void>(const sys::Fd&)>& visit);

/// Appends the processes in `directory` and below to `pids`.
Result<void> append_processes(const sys::Fd& directory, std::vector<pid_t>& pids);

}  // namespace berth::runtime
