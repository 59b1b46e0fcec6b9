// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"
#include "image/layer_work.hpp"

/// What becomes of layers that are unpacked.
namespace berth::engine {

enum class Trial { no, yes };  ///< yes: only tell

/// Makes files of layers that are the same one on the disk.
/// Errors: interrupted, io.
Result<image::DedupeReport> dedupe_layers(const Context& context, Trial trial,
                                          const Progress& progress);

/// Makes of the layers of `images`, names or ids, "directory" or "erofs".
/// Errors: usage (the format), not_found, busy (a container uses one), corrupt (one is damaged),
/// unsupported and io (this user or this kernel cannot mount them), interrupted.
Result<image::ConvertReport> convert_layers(const Context& context, const std::string& format,
                                            const std::vector<std::string>& images,
                                            const Progress& progress);

}  // namespace berth::engine
