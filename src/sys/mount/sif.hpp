// SPDX-License-Identifier: Apache-2.0
// SIF, the format of Apptainer's and Singularity's images: finds the root file system in a file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::sys {

/// A range of bytes of a file.
struct Extent {
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Reads bytes of the file; fewer at its end.
using ReadAt = std::function<Result<std::string>(uint64_t offset, size_t length)>;

/// The size of a SIF's header, which identifies it.
inline constexpr size_t kSifHeader = 128;

bool is_sif(std::string_view head);

/// The squashfs that is the primary system partition of a SIF of `file_size` bytes, which lies
/// inside the file and overlaps nothing else of it.
/// Errors: corrupt (no such table of objects, outside of the file, overlapping), unsupported
/// (encrypted, another file system, no or more than one such partition).
/// Source: sylabs/sif, pkg/sif (header.go, descriptor.go).
Result<Extent> find_sif_root(const ReadAt& read, uint64_t file_size);

}  // namespace berth::sys
