// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "erofs/serve/tree.hpp"
#include "sys/fd/fd.hpp"

namespace berth::erofs {

/// Serves the tree of `image` through FUSE, by several threads, until the last mount of it is gone.
/// `place`: "/dev/fd/N", a connection that is mounted already, or a directory to mount it at.
/// What the kernel asks for once it keeps, for nothing here ever changes; the content of files goes
/// from the image's file to the kernel without a copy of ours.
/// Errors: io.  fuse(4)
Result<void> serve(const ShownTree& tree, const sys::Fd& image, const std::string& place);

}  // namespace berth::erofs
