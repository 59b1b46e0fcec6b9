// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/fd/fd.hpp"
#include "transfer/gzip/inflater.hpp"

namespace berth::transfer {

/// Reads `file`, which has to outlive it, from its start.  Errors: io.
Inflater::Input file_input(const sys::Fd& file);

}  // namespace berth::transfer
