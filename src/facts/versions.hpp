// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// The highest version of each family that counts up: GLIBC, GLIBCXX, CXXABI, GCC, GFORTRAN, GOMP.
struct SymbolVersions {
  std::map<std::string, std::string> needs;  ///< weak ones, which no loader insists on, left out
  std::map<std::string, std::string> offers;
};

/// Reads the tables of versions by way of the dynamic section.
/// Errors: corrupt (a table leads outside of the file, or is longer than any that a linker writes).
/// Source: LSB "symbol versioning", elf.h Elf64_Verneed and Elf64_Verdef.
Result<SymbolVersions> read_symbol_versions(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::facts
