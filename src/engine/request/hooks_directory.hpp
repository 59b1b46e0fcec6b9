// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::engine {

/// Checks podman's --hooks-dir: a directory of files that name a container's hooks. NVIDIA's own
/// hook does what --gpus does here; any other is an error. A missing directory has no hooks.
/// Errors: unsupported (naming the file of another hook), io.
/// Source: oci-hooks(5)
Result<void> check_hooks_directory(const std::string& path);

}  // namespace berth::engine
