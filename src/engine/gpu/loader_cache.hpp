// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/image/merged.hpp"
#include "scan/loader.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

inline constexpr const char* kLoaderCache = "/etc/ld.so.cache";

/// The container's own changes to the loader cache in its layer. Each start adds the driver's
/// libraries to the cache, and so does an ldconfig in the container.
struct OwnCache {
  bool unchanged = false;              ///< equal to the image's except for these libraries
  std::optional<std::string> without;  ///< otherwise: the bytes without them, if it contains them
};

/// `etc`: /etc in the container's own layer; `below`: in the image. Both are untrusted. `added`:
/// loader_entries_of() the container.  Errors: io, denied.
Result<OwnCache> judge_loader_cache(const sys::Fd& etc, const Merged& below,
                                    const std::vector<scan::LoaderEntry>& added);

}  // namespace berth::engine
