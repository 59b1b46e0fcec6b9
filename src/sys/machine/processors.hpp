// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace berth::sys {

/// How many processors the machine has online. sysconf(3)
size_t online_processors();

}  // namespace berth::sys
