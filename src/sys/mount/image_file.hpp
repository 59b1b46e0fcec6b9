// SPDX-License-Identifier: Apache-2.0
// Detects the read-only file system in a file.
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

/// Reads the first bytes of `file`, open for reading, and the object table of a SIF. Nothing:
/// neither of those formats.
/// Errors: usage (no regular file), corrupt (truncated, a damaged SIF), unsupported (a SIF with
/// another root), io.
Result<std::optional<ImagePart>> identify_image(const Fd& file, const std::string& name);

}  // namespace berth::sys
