// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace berth::sys {

/// What is taken from the mode of new files, for this process and its children; gives what it was
/// before. umask(2)
mode_t set_umask(mode_t mask);

}  // namespace berth::sys
