// SPDX-License-Identifier: Apache-2.0
#include "sys/adopt.hpp"

#include <sys/prctl.h>

#include <cerrno>

namespace berth::sys {

Result<void> become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return errno_now().error("adopt orphans");
  return {};
}

}  // namespace berth::sys
