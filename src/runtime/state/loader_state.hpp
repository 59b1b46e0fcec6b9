// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, when a container of another engine ends. Capabilities: the caller's.
// Hostile: every name below the root, and the cache there, which is read in a confined child.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "runtime/state/state.hpp"
#include "sys/fd/fd.hpp"

/// What a container's state keeps of its loader files, and how they are taken out of a root that
/// stays when the container goes. See docs/decisions/0173.
namespace berth::runtime {

inline constexpr const char* kCachePath = "/etc/ld.so.cache";
inline constexpr int64_t kMaxCache = int64_t{16} << 20;

// Files in the directory of a container's state.
inline constexpr const char* kKeptCache = "ld.so.cache";               ///< what was written
inline constexpr const char* kOriginalCache = "original-ld.so.cache";  ///< what the root had
inline constexpr const char* kKeptLines = "loader-lines";  ///< to_annotation(LoaderLine…)
/// What was not there and was made, a path a line; kReplaced before one: something was there.
inline constexpr const char* kMadeNames = "loader-names";
inline constexpr std::string_view kReplaced = "=";

/// A new file in the place of the cache in `etc` and of the same owner, open for reading and
/// writing at its start. The directory has the time that it had: nothing that the container did.
/// Errors: denied, io; nothing is left then.
Result<sys::Fd> replace_cache(const sys::Fd& etc, std::string_view bytes);

/// Whether what `plan` puts into the root for its loader is to be taken out again: the root stays
/// when the container goes, and is no upper directory, which is its engine's to look after.
bool leaves_loader_files(const plan::Plan& plan);

/// Takes back what the start of the container has put into its root, so that what its engine
/// commits is the image's cache and what the container's own ldconfig has added. A root in which
/// another container runs, or which is mounted no more, stays as it is. Nothing for a `state`
/// without State::loader_files. Errors: io, denied (the root).
Result<void> remove_loader_files(const Store& store, const State& state);

}  // namespace berth::runtime
