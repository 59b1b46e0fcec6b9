// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "engine/decide/decide.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"

/// Writes a Decision to disk.
namespace berth::engine {

/// A file next to config.json: the configuration that `berth update` is applying, or that a killed
/// `berth update` left. berth-runtime knows this name.
inline constexpr std::string_view kNextConfig = "config.next.json";

/// Writes the config of `decision` into the bundle in `directory`: everything that berth-runtime
/// plans from.  Errors: io.
Result<void> write_config(const Decision& decision, const ContainerDirectory& directory);

/// Creates missing sources of volumes, and writes the files of `decision` into `directory`.
/// Errors: not_found (a socket to mount), unsupported, io.
Result<void> write_files(const RunRequest& request, const Decision& decision,
                         const ContainerDirectory& directory);

}  // namespace berth::engine
