// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "scan/elf.hpp"

namespace berth::facts {

/// The x86-64 level of the instructions that a program runs on any processor: the straight-line
/// beginnings of its constructors and of main(). No code checks the processor there, so the program
/// dies with SIGILL on a lesser one. A beginning ends at the first condition, at an unknown jump
/// and at CPUID; called functions are not followed. So code behind a dispatch, such as an IFUNC's,
/// never counts. Reads some hundred instructions. Returns 0 if none is above the baseline, and if
/// it cannot tell.
/// Source: x86-64 psABI "micro-architecture levels".
uint32_t level_of_code(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::facts
