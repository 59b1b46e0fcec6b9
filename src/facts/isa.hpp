// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "facts/facts.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// What the property notes ask for, with which glibc's loader refuses a program or library: a lower
/// bound, for compilers write "baseline" for more. Level 0 where there is no such note.
/// Source: x86-64 psABI "program property", GNU_PROPERTY_X86_ISA_1_NEEDED; glibc
/// sysdeps/x86/dl-prop.h.
IsaNeed isa_of_notes(const scan::ElfFile& elf);

/// GOAMD64 of a Go program, which its runtime checks at start; level 0 for all else. Only what Go
/// ≥ 1.18 writes, which is when GOAMD64 came.  Errors: those of `read_at`.
/// Source: Go debug/buildinfo.
Result<IsaNeed> isa_of_go(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::facts
