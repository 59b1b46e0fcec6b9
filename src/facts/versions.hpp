// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// The highest version of each numbered family: GLIBC, GLIBCXX, CXXABI, GCC, GFORTRAN, GOMP.
struct SymbolVersions {
  std::map<std::string, std::string> needs;  ///< without weak references, which no loader requires
  std::map<std::string, std::string> offers;
};

/// Reads the version tables through the dynamic section.
/// Errors: corrupt (a table beyond the file, or longer than any linker writes).
/// Source: LSB "symbol versioning", elf.h Elf64_Verneed and Elf64_Verdef.
Result<SymbolVersions> read_symbol_versions(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::facts
