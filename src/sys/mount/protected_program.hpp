// SPDX-License-Identifier: Apache-2.0
// CVE-2019-5736: the first process of a container is the runtime until it executes the image's
// program. An image whose program is /proc/self/exe, or opens /proc/1/exe in time, has a descriptor
// of the runtime's file, and can write to it as soon as no process executes it any more. So the
// runtime is executed through a handle that does not allow writing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A handle of the program at `path`, to be executed by its fd_path(): a read-only view of the
/// file, or a sealed copy in memory if we cannot mount. Nothing if the file cannot be written
/// through `path` anyway, because we have no permission or because `path` ("/proc/self/exe") is
/// such a handle already. The handle may have FD_CLOEXEC.
/// Errors: not_found, io.  open_tree(2), mount_setattr(2), memfd_create(2)
Result<std::optional<Fd>> protect_program(const std::string& path);

/// Our environment with BERTH_LIBEXEC_DIR set to `directory`, for a program that is executed
/// through such a handle and so cannot find its own directory.
std::vector<std::string> environment_beside(const std::string& directory);

}  // namespace berth::sys
