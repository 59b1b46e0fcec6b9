// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Drops permanently everything that a parser of untrusted bytes does not need: every descriptor
/// but `keep` and the standard error, capabilities, the identity of the machine's root (it becomes
/// nobody), the right to gain privileges, more than 512 MiB of memory or five seconds of processor
/// time, and every system call except those that read, write, allocate memory and exit. Any other
/// call kills the process. For a child that ends by _exit(2).
/// Errors: unsupported (a machine with unknown system call numbers), io, denied. seccomp(2),
/// capabilities(7)
Result<void> confine(const std::vector<int>& keep);

/// Calls `rewrite` for untrusted `bytes` in a confined child and returns the result. Nothing if
/// `rewrite` returns nothing, breaks one of the rules of confine(), or takes more than ten seconds.
/// Errors: io (no child could be made), corrupt (more than `max_size` bytes).
Result<std::optional<std::string>> rewrite_confined(
    std::string_view bytes, size_t max_size,
    const std::function<std::optional<std::string>(std::string_view)>& rewrite);

}  // namespace berth::sys
