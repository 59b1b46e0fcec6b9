// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace berth::engine {

/// Bytes of the regular files below the directory `path`, a file with several names counted once.
/// No link is followed; what cannot be read, or goes away meanwhile, is not counted.
uint64_t tree_size(const std::string& path);

}  // namespace berth::engine
