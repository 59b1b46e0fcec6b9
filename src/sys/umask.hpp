// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace berth::sys {

/// What is taken from the mode of new files, for this process and its children. umask(2)
void set_umask(mode_t mask);

}  // namespace berth::sys
