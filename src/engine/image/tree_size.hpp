// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace berth::engine {

/// Bytes of the regular files below the directory `path`; a file with several names counts once.
/// Follows no links; skips entries that cannot be read or are removed meanwhile.
uint64_t tree_size(const std::string& path);

}  // namespace berth::engine
