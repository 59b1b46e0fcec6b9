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

/// Sixteen hex digits that stand for `text`. They name what our own process wrote below a directory
/// that only we can write: a collision would take an attacker who already is us.
std::string key_of_text(std::string_view text);

using Fill = std::function<Result<void>(const sys::Fd& directory)>;

/// Makes the directory `name` in `parent` with what `fill` puts into it, unless it is there. Others
/// may do the same at the same time; a builder that was killed leaves what the next one removes.
/// Readable for all, whatever the umask. Errors: io, those of `fill`.
Result<void> publish_directory(const sys::Fd& parent, const std::string& name, const Fill& fill);

/// The directories on the way to the relative `path`, each once, readable for all.
Result<void> make_parents(const sys::Fd& directory, const std::string& path,
                          std::set<std::string>& made);

/// Errors: not_found ("driver file '…' is gone", with what to try).
Result<struct stat> stat_driver_file(const std::string& path);

}  // namespace berth::gpu
