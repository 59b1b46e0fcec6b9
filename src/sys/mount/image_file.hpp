// SPDX-License-Identifier: Apache-2.0
// Detects the read-only file system in a file, also in an image of Apptainer or Singularity (SIF).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A range of bytes of a file.
struct Extent {
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Reads bytes of the file; returns fewer at the end of the file.
using ReadAt = std::function<Result<std::string>(uint64_t offset, size_t length)>;

/// The size of a SIF's header, which identifies it.
inline constexpr size_t kSifHeader = 128;

/// Finds the squashfs that is the primary system partition of a SIF of `file_size` bytes. Checks
/// that it is inside the file and does not overlap other objects. Errors: corrupt (no table of
/// objects, a partition outside of the file, overlapping), unsupported (encrypted, another file
/// system, no or more than one such partition).
/// Source: sylabs/sif, pkg/sif (header.go, descriptor.go).
Result<Extent> find_sif_root(const ReadAt& read, uint64_t file_size);

enum class ImageFormat { erofs, squashfs };

struct ImagePart {
  ImageFormat format = ImageFormat::erofs;
  Extent extent;  ///< of the file system in the file
  bool sif = false;
};

/// Reads the first bytes of `file`, open for reading, and the object table of a SIF. Nothing: the
/// file has none of these formats. Errors: usage (not a regular file), corrupt (truncated, a
/// damaged SIF), unsupported (a SIF with another root), io.
Result<std::optional<ImagePart>> identify_image(const Fd& file, const std::string& name);

}  // namespace berth::sys
