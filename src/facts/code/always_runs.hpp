// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "scan/elf.hpp"

namespace berth::facts {

/// The x86-64 level of the instructions that a program runs on any processor: the straight-line
/// beginnings of its constructors and of main(). No code there checks the processor, so the program
/// dies with SIGILL on a processor of a lower level. A beginning ends at the first conditional
/// branch, at a jump to an unknown address and at CPUID; called functions are not followed. So code
/// that is chosen at run time, for example by an IFUNC, never counts. Reads a few hundred
/// instructions. Returns 0 if no instruction is above the baseline, or if the level cannot be
/// determined.
/// Source: x86-64 psABI "micro-architecture levels".
uint32_t level_of_code(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::facts
