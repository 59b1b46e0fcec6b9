// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace berth::sys {

/// Sets the umask of this process and its children; returns the old one. umask(2)
mode_t set_umask(mode_t mask);

}  // namespace berth::sys
