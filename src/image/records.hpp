// SPDX-License-Identifier: Apache-2.0
// The files in images/: one per name, and one per image without a name. Only for this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "image/image.hpp"

namespace berth::image {

/// All readable records, sorted by file name; adds the names of damaged files to `damaged`.
Result<std::vector<ImageRecord>> read_records(const sys::Fd& root,
                                              std::vector<std::string>& damaged);

/// The record of exactly this name. Errors: corrupt (damaged).
Result<std::optional<ImageRecord>> read_record(const sys::Fd& root, const Reference& reference);

/// Writes `record`. An image that loses its last name through this is kept under its digest; one
/// that gains its first loses that entry. The caller holds the store's lock, exclusively.
/// Errors: usage (the name is too long for a file name), io.
Result<void> put_record(const sys::Fd& root, const ImageRecord& record);

Result<void> unlink_record(const sys::Fd& root, const ImageRecord& record);

/// Adds the missing ones.
void add_sources(const std::vector<Reference>& more, std::vector<Reference>& sources);

/// Whether two records are the same file.
bool same_record(const ImageRecord& a, const ImageRecord& b);

}  // namespace berth::image
