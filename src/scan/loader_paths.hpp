// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::scan {

/// The default directories of all distributions' loaders, joined by ':'.
inline constexpr const char* kDefaultDirectories =
    "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
    "/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib";

/// DT_RPATH or DT_RUNPATH of a file in the directory `origin`, with $ORIGIN expanded.  ld.so(8)
std::string expand_origin(std::string directories, const std::string& origin);

/// "/usr/lib/x" → "/usr/lib".
std::string parent_of(const std::string& path);

}  // namespace berth::scan
