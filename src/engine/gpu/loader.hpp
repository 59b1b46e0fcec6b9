// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/merged.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/loader.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

inline constexpr const char* kLoaderCache = "/etc/ld.so.cache";

/// The changes to the loader cache in the container's own layer. Each start adds the driver's
/// libraries to the cache, and so does an ldconfig in the container.
struct OwnCache {
  bool unchanged = false;              ///< equal to the image's cache except for these libraries
  std::optional<std::string> without;  ///< else: the cache without them, if it has any
};

/// `etc`: /etc in the container's own layer; `below`: /etc in the image. Both are untrusted.
/// `added`: loader_entries_of() of the container's configuration.  Errors: io, denied.
Result<OwnCache> judge_loader_cache(const sys::Fd& etc, const Merged& below,
                                    const std::vector<scan::LoaderEntry>& added);

/// Adds a layer below all layers of the image for the container's loader: the mount point of
/// ldconfig's configuration, the file that makes ldconfig read it, and the driver's libraries under
/// their names without a version. Files of the image hide the files of this layer, and none of them
/// are written to the container's own layer. Does nothing for a container without granted
/// libraries. See docs/decisions/0173.  Errors: io (the state directory).
Result<void> add_loader_places(const Context& context, oci::Spec& spec);

/// The entries that the loader of a container of this configuration needs beyond its image's cache.
std::vector<scan::LoaderEntry> loader_entries_of(const oci::Spec& spec);

}  // namespace berth::engine
