// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "scan/elf.hpp"

namespace berth::facts {

/// The x86-64 level of the instructions that a program runs whatever the processor is: the straight
/// beginnings of its constructors and of main(). Nobody asks the processor there, so it ends with
/// SIGILL on a lesser one. A beginning ends at the first condition, at a jump that is not known and
/// where the processor is asked; what is called is not looked into. So code behind a choice, as
/// that of IFUNCs, never counts. Some hundred instructions are read.
/// Returns 0 where none is above the baseline, and where the file cannot be told.
/// Source: x86-64 psABI "micro-architecture levels".
uint32_t level_of_code(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::facts
