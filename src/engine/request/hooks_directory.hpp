// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::engine {

/// Checks podman's --hooks-dir: a directory of files that name a container's hooks. NVIDIA's hook
/// is accepted, since --gpus does the same; any other hook is an error. A missing directory has no
/// hooks.
/// Errors: unsupported (another hook; names its file), io.
/// Source: oci-hooks(5)
Result<void> check_hooks_directory(const std::string& path);

}  // namespace berth::engine
