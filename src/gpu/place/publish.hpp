// SPDX-License-Identifier: Apache-2.0
// Directories of ours that are built once and then only read, by any number of processes.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// Sixteen hex digits, a hash of `text`. They name what our own process wrote below a directory
/// that only we can write: a collision would need an attacker with our own rights.
std::string key_of_text(std::string_view text);

using Fill = std::function<Result<void>(const sys::Fd& directory)>;

/// Makes the directory `name` in `parent`, filled by `fill`, unless it exists. Others may do the
/// same at the same time; the next builder removes what a killed one left. World-readable, whatever
/// the umask. Errors: io, those of `fill`.
Result<void> publish_directory(const sys::Fd& parent, const std::string& name, const Fill& fill);

/// Makes the parent directories of the relative `path`, each once, world-readable.
Result<void> make_parents(const sys::Fd& directory, const std::string& path,
                          std::set<std::string>& made);

/// Errors: not_found ("driver file '…' is gone", with a hint).
Result<struct stat> stat_driver_file(const std::string& path);

}  // namespace berth::gpu
