// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::engine {

/// The last bytes of a file, or of standard input if `path` is "-": at most known_error::kMaxLog,
/// and of a regular file one more, which shows that it is longer. A pipe is read to its end.
/// Errors: not_found, denied, io.
Result<std::string> read_log_end(const std::string& path);

}  // namespace berth::engine
