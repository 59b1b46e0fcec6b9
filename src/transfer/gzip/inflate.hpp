// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/fd/fd.hpp"
#include "transfer/gzip/inflater.hpp"

namespace berth::transfer {

/// The threads that inflate one layer, as BERTH_INFLATE_THREADS asks for: 1 unless it is a larger
/// number.  Errors: usage (no number, or over 64).
Result<size_t> parse_inflate_threads(std::string_view text);

/// Reads `file`, which has to outlive it, from its start.  Errors: io.
Inflater::Input file_input(const sys::Fd& file);

}  // namespace berth::transfer
