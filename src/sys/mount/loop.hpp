// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/sif.hpp"

namespace berth::sys {

/// Attaches a part of the file `image` to a read-only loop device, which is removed with its last
/// handle or mount. An extent of size 0 is the rest of the file; the size of the device is a
/// multiple of 512.
/// Errors: not_found (no loop devices here), denied, busy (none is free), io.  loop(4)
Result<Fd> make_loop(const Fd& image, const Extent& part, uint32_t block_size);

}  // namespace berth::sys
