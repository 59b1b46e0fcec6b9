// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// fchmod(2): the mode as given, whatever the caller's umask. `name` is for errors.
Result<void> change_mode(const Fd& fd, mode_t mode, const std::string& name);

}  // namespace berth::sys
