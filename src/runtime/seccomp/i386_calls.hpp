// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::runtime {

/// The number of the system call `name` for programs of i386, as the header asm/unistd_32.h has it;
/// nothing for a name that it lacks, and on another processor. seccomp_syscall_resolve_name_arch()
/// compares each name with 27 others first, which took a twelfth of a start's instructions.
std::optional<uint32_t> find_i386_call(std::string_view name);

}  // namespace berth::runtime
