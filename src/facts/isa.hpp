// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "facts/facts.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// The level in the property notes, with which glibc's loader refuses a program or library: a lower
/// bound, as compilers also write "baseline" for more. Level 0 without such a note.
/// Source: x86-64 psABI "program property", GNU_PROPERTY_X86_ISA_1_NEEDED; glibc
/// sysdeps/x86/dl-prop.h.
IsaNeed isa_of_notes(const scan::ElfFile& elf);

/// GOAMD64 of a Go program, which its runtime checks at start; level 0 for others. Reads the format
/// of Go ≥ 1.18, which introduced GOAMD64.  Errors: those of `read_at`.
/// Source: Go debug/buildinfo.
Result<IsaNeed> isa_of_go(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::facts
