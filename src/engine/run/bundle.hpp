// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "engine/decide/decision.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"

/// A Decision on disk.
namespace berth::engine {

/// Beside config.json: what `berth update` is making of it, or was when it was killed.
/// berth-runtime knows it by this name.
inline constexpr std::string_view kNextConfig = "config.next.json";

/// Writes the config of `decision` into the bundle in `directory`: all that berth-runtime decides
/// by.  Errors: io.
Result<void> write_config(const Decision& decision, const ContainerDirectory& directory);

/// Makes the sources of volumes that are missing, and writes the files of `decision` into
/// `directory`.  Errors: not_found (a socket to mount), unsupported, io.
Result<void> write_files(const RunRequest& request, const Decision& decision,
                         const ContainerDirectory& directory);

}  // namespace berth::engine
