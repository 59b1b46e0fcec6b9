// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "node/profile.hpp"

namespace berth::node {

/// The first processor in the content of /proc/cpuinfo, which may be truncated and is not trusted:
/// malformed lines are skipped, a value has at most 256 characters without control characters, and
/// there are at most 1024 features. `family` is the machine from uname(2): "x86_64", "aarch64",
/// "ppc64le", "riscv64". Fills all members: see complete().
/// Source: the kernel's arch/*/kernel/ (cpu/proc.c, cpuinfo.c, setup-common.c, cpu.c).
Cpu read_cpuinfo(std::string_view text, std::string_view family);

}  // namespace berth::node
