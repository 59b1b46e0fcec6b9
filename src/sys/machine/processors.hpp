// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::sys {

/// The bytes of a page of memory. sysconf(3)
uint64_t page_bytes();

/// The number of processors that are online. sysconf(3)
size_t online_processors();

}  // namespace berth::sys
