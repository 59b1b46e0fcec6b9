// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "node/profile.hpp"

namespace berth::node {

/// The first processor of the text of /proc/cpuinfo, which may be cut off anywhere and hold
/// anything: a line that says nothing is skipped, a value is at most 256 characters long without
/// control characters, and there are at most 1024 features. `family` is the machine as uname(2) has
/// it: "x86_64", "aarch64", "ppc64le", "riscv64". All of the CPU is filled: see complete().
/// Source: the kernel's arch/*/kernel/ (cpu/proc.c, cpuinfo.c, setup-common.c, cpu.c).
Cpu read_cpuinfo(std::string_view text, std::string_view family);

}  // namespace berth::node
