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

/// Gives up for good all that reading somebody else's bytes does not need: every descriptor but
/// `keep` and the standard error, capabilities, root's identity where the machine's root has it
/// (nobody's instead), new privileges, more than 512 MiB of memory or five seconds of processor
/// time, and every system call but those that read, write, give memory and end. What calls another
/// is killed. For a child that ends by _exit(2).
/// Errors: unsupported (a machine that we have no numbers of system calls for), io, denied.
/// seccomp(2), capabilities(7)
Result<void> confine(const std::vector<int>& keep);

/// What `rewrite` makes of somebody else's `bytes`, called in a child that has confined itself.
/// Nothing where it gives nothing, breaks one of those rules, or takes more than ten seconds.
/// Errors: io (no child could be made), corrupt (more than `max_size` bytes).
Result<std::optional<std::string>> rewrite_confined(
    std::string_view bytes, size_t max_size,
    const std::function<std::optional<std::string>(std::string_view)>& rewrite);

}  // namespace berth::sys
