// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::engine {

/// podman's --hooks-dir: a directory of files that say which hooks a container gets. NVIDIA's own
/// is what --gpus does; no other is read. One that is not there has none.
/// Errors: unsupported (naming the file of another hook), io.
/// Source: oci-hooks(5)
Result<void> check_hooks_directory(const std::string& path);

}  // namespace berth::engine
