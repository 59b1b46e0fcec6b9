// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// mknodat(2); `mode` with S_IFCHR, S_IFBLK or S_IFIFO. Errors: exists, denied.
Result<void> make_node(const Fd& dir, const std::string& name, mode_t mode, unsigned major,
                       unsigned minor);
/// mkdirat(2). Errors: exists (anything of that name, even a dangling link).
Result<void> make_new_directory(const Fd& dir, const std::string& name, mode_t mode);

/// True when `fd` is the device `type` ("c", "b") `major`:`minor`.
Result<bool> is_device(const Fd& fd, const std::string& type, unsigned major, unsigned minor,
                       const std::string& name);

}  // namespace berth::sys
