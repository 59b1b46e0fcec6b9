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

/// The loader files that are kept in a container's state, and their removal from a root that
/// outlives the container. See docs/decisions/0173.
namespace berth::runtime {

inline constexpr const char* kCachePath = "/etc/ld.so.cache";
inline constexpr int64_t kMaxCache = int64_t{16} << 20;

// Files in the directory of a container's state.
inline constexpr const char* kKeptCache = "ld.so.cache";               ///< the cache that was
                                                                       ///< written
inline constexpr const char* kOriginalCache = "original-ld.so.cache";  ///< the cache that the root
                                                                       ///< had before
inline constexpr const char* kKeptLines = "loader-lines";  ///< the added entries: to_annotation()
/// The paths that were made, one per line; kReplaced before a path means that a file was there
/// before.
inline constexpr const char* kMadeNames = "loader-names";
inline constexpr std::string_view kReplaced = "=";

/// Replaces the cache in `etc` by a new file of the same owner, open for reading and writing at its
/// start. Restores the mtime of `etc`, because the container did not change the directory. Errors:
/// denied, io; nothing is left then.
Result<sys::Fd> replace_cache(const sys::Fd& etc, std::string_view bytes);

/// Whether the loader files that `plan` puts into the root have to be removed again: the root
/// outlives the container, and is not an upper directory, from which the engine removes them.
bool leaves_loader_files(const plan::Plan& plan);

/// Removes what the start of the container put into its root, so that a commit by the engine
/// contains the image's cache and what the container's own ldconfig added. Does not touch a root in
/// which another container runs or which is not mounted any more. Does nothing for a `state`
/// without State::loader_files. Errors: io, denied (the root).
Result<void> remove_loader_files(const Store& store, const State& state);

}  // namespace berth::runtime
