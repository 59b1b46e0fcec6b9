// SPDX-License-Identifier: Apache-2.0
// The number of threads of an Inflater, and its input from a file.
#pragma once

#include "sys/fd/fd.hpp"
#include "transfer/compression/inflater.hpp"

namespace berth::transfer {

/// The number of threads that inflate one layer, from the value of BERTH_INFLATE_THREADS; 1 if it
/// is empty or 0.  Errors: usage (not a number, or over 64).
Result<size_t> parse_inflate_threads(std::string_view text);

/// Reads `file` from its start; `file` has to outlive the result.  Errors: io.
Inflater::Input file_input(const sys::Fd& file);

}  // namespace berth::transfer
