// SPDX-License-Identifier: Apache-2.0
#include "sys/umask.hpp"

#include <sys/stat.h>

namespace berth::sys {

void set_umask(mode_t mask) {
  ::umask(mask);
}

}  // namespace berth::sys
