// SPDX-License-Identifier: Apache-2.0
// Which GPU code a program or library runs, and which of it is left over from a linker.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "facts/fat_binary.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

struct ProgramCode {
  CodePiece runs;            ///< what the program's modules have
  std::set<GpuCode> linked;  ///< what else is in the file: inputs of a linker, empty code objects
};

/// Reads the sections with GPU code of a linked file.
/// Errors: those of read_fat_binaries() and read_offload_bundles().
/// Source: docs/decisions/0185-code-that-a-program-runs.md
Result<ProgramCode> read_program_code(const scan::ElfFile& elf, const scan::ReadAt& read_at);

/// The code of several pieces that all have to run: of each, what runs where all others have code
/// that runs as well or better. If there is none, all of it.
CodePiece code_of_all(const std::vector<CodePiece>& pieces);

}  // namespace berth::facts
