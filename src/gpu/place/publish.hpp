// SPDX-License-Identifier: Apache-2.0
// Directories that Berth builds once. Any number of processes read them afterwards.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// A hash of `text`, sixteen hex digits. It names files below a directory that only this user can
/// write: to cause a collision, an attacker would already need the rights of this user.
std::string key_of_text(std::string_view text);

using Fill = std::function<Result<void>(const sys::Fd& directory)>;

/// Makes the directory `name` in `parent`, filled by `fill`, unless it exists. Several processes
/// may do this at the same time; the next one removes what a killed one left. The directory is
/// world-readable, whatever the umask. Errors: io, those of `fill`.
Result<void> publish_directory(const sys::Fd& parent, const std::string& name, const Fill& fill);

/// Makes the missing parent directories of the relative `path`, world-readable.
Result<void> make_parents(const sys::Fd& directory, const std::string& path,
                          std::set<std::string>& made);

/// Errors: not_found ("driver file '…' is gone", with a hint).
Result<struct stat> stat_driver_file(const std::string& path);

}  // namespace berth::gpu
