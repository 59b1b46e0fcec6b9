// SPDX-License-Identifier: Apache-2.0
#include "sys/machine/processors.hpp"

#include <unistd.h>

namespace berth::sys {

uint64_t page_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

size_t online_processors() {
  long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<size_t>(count) : 1;
}

}  // namespace berth::sys
