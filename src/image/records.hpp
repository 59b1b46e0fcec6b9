// SPDX-License-Identifier: Apache-2.0
// The files in images/: one per name, and one per image that has no name. Inside this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "image/image.hpp"

namespace berth::image {

/// All readable records, sorted by file name; the names of damaged files go to `damaged`.
Result<std::vector<ImageRecord>> read_records(const sys::Fd& root,
                                              std::vector<std::string>& damaged);

/// The record of exactly this name. Errors: corrupt (it is damaged).
Result<std::optional<ImageRecord>> read_record(const sys::Fd& root, const Reference& reference);

/// Writes `record`. An image that thereby loses its last name is kept under its digest, and one
/// that gains its first is no longer. The caller holds the store's lock, exclusively.
/// Errors: usage (the name is too long for a file name), io.
Result<void> put_record(const sys::Fd& root, const ImageRecord& record);

Result<void> unlink_record(const sys::Fd& root, const ImageRecord& record);

/// Adds what is not there yet.
void add_sources(const std::vector<Reference>& more, std::vector<Reference>& sources);

/// Whether two records are the same file.
bool same_record(const ImageRecord& a, const ImageRecord& b);

}  // namespace berth::image
