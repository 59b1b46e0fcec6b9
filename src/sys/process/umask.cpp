// SPDX-License-Identifier: Apache-2.0
#include "sys/process/umask.hpp"

#include <sys/stat.h>

namespace berth::sys {

mode_t set_umask(mode_t mask) {
  return ::umask(mask);
}

}  // namespace berth::sys
