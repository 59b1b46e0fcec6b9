// SPDX-License-Identifier: Apache-2.0
// Which read-only file system a file holds, by its own words.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/sif.hpp"

namespace berth::sys {

enum class ImageFormat { erofs, squashfs };

struct ImagePart {
  ImageFormat format = ImageFormat::erofs;
  Extent extent;  ///< of the file system in the file
  bool sif = false;
};

/// Looks at the first bytes of what `file` is open at (for reading), and of a SIF at its table of
/// objects. Nothing: neither of those formats.
/// Errors: usage (no regular file), corrupt (truncated, a damaged SIF), unsupported (a SIF with
/// another root), io.
Result<std::optional<ImagePart>> identify_image(const Fd& file, const std::string& name);

}  // namespace berth::sys
