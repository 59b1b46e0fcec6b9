// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace berth::sys {

/// The number of processors that are online. sysconf(3)
size_t online_processors();

}  // namespace berth::sys
