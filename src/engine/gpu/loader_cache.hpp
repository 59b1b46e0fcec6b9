// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/image/merged.hpp"
#include "scan/loader_cache.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

inline constexpr const char* kLoaderCache = "/etc/ld.so.cache";

/// What of the loader cache in a container's own layer is the container's doing. The driver's
/// libraries are put there at each start, and by an ldconfig of the container.
struct OwnCache {
  bool unchanged = false;              ///< but for those it says what the image's says
  std::optional<std::string> without;  ///< else the bytes without them, where they are in it
};

/// `etc`: the directory of that name in the container's own layer; `below`: what the image has
/// there. Both are foreign. `added`: loader_entries_of() the container.  Errors: io, denied.
Result<OwnCache> judge_loader_cache(const sys::Fd& etc, const Merged& below,
                                    const std::vector<scan::LoaderEntry>& added);

}  // namespace berth::engine
