// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"
#include "image/transfer_protocol.hpp"

/// Maintenance of the store: merges equal files, converts layers, finds damage.
namespace berth::engine {

enum class Trial { no, yes };  ///< yes: only report

/// Replaces equal files in layers by one file on the disk.
/// Errors: interrupted, io.
Result<image::DedupeReport> dedupe_layers(const Context& context, Trial trial,
                                          const Progress& progress);

/// Converts the layers of `images`, names or ids, to the format "directory" or "erofs".
/// Errors: usage (the format), not_found, busy (a container uses a layer), corrupt (a damaged
/// layer), unsupported and io (this user or this kernel cannot mount the new format), interrupted.
Result<image::ConvertReport> convert_layers(const Context& context, const std::string& format,
                                            const std::vector<std::string>& images,
                                            const Progress& progress);

enum class Repair { no, yes };

/// Checks everything in the store; Repair::yes removes damaged and unneeded files, except those
/// that a container uses.  Errors: those of berth-transfer.
Result<image::CheckReport> check_store(const Context& context, Repair repair);

}  // namespace berth::engine
