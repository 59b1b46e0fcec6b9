// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "erofs/serve/tree.hpp"
#include "sys/fd/fd.hpp"

namespace berth::erofs {

/// Serves the tree of `image` through FUSE, with several threads, until the last mount of the tree
/// is gone. `place`: "/dev/fd/N", a FUSE connection that is mounted already, or the directory to
/// mount the tree at. The kernel caches everything, as nothing ever changes; file content goes from
/// the image file to the kernel without a copy.
/// Errors: io.  fuse(4)
Result<void> serve(const ShownTree& tree, const sys::Fd& image, const std::string& place);

}  // namespace berth::erofs
