// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

namespace berth::sys {

/// Orphans below this process become its children. PR_SET_CHILD_SUBREAPER
Result<void> become_subreaper();

}  // namespace berth::sys
