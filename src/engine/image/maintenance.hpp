// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"
#include "image/transfer_protocol.hpp"

/// Work on what the store has: equal files, the form of layers, damage.
namespace berth::engine {

enum class Trial { no, yes };  ///< yes: only report

/// Replaces equal files in layers by one file on the disk.
/// Errors: interrupted, io.
Result<image::DedupeReport> dedupe_layers(const Context& context, Trial trial,
                                          const Progress& progress);

/// Converts the layers of `images`, names or ids, to the format "directory" or "erofs".
/// Errors: usage (the format), not_found, busy (a container uses one), corrupt (a damaged one),
/// unsupported and io (this user or this kernel cannot mount them), interrupted.
Result<image::ConvertReport> convert_layers(const Context& context, const std::string& format,
                                            const std::vector<std::string>& images,
                                            const Progress& progress);

enum class Repair { no, yes };

/// Checks everything in the store; Repair::yes removes what is damaged or not needed, except what a
/// container uses.  Errors: those of berth-transfer.
Result<image::CheckReport> check_store(const Context& context, Repair repair);

}  // namespace berth::engine
