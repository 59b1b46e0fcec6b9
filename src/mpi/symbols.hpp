// SPDX-License-Identifier: Apache-2.0
// The symbols that an ELF file defines and needs, with the versions that glibc's loader requires.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "scan/elf.hpp"

namespace berth::mpi {

using Names = std::set<std::string, std::less<>>;

/// A version that this file requires of another file; without it the loader refuses this file.
struct VersionNeed {
  std::string library;  ///< "libc.so.6"
  std::string version;  ///< "GLIBC_2.38"
  std::string symbol;   ///< a symbol that needs it; empty: unknown
  bool operator==(const VersionNeed&) const = default;
};

struct Symbols {
  Names defined;
  Names undefined;                 ///< except weak ones, which may stay undefined
  Names offers;                    ///< versions that it defines: "GLIBC_2.34"
  std::vector<VersionNeed> needs;  ///< except weak ones
  std::string mpi_version;         ///< as MPICH and Open MPI contain it: "4.1.4"; empty: none
};

/// Reads the tables of the dynamic section; without them the result is empty.
/// Errors: unsupported (32 bits), corrupt (a table beyond the file, or longer than any linker
/// writes), those of `read_at`.
/// Source: gABI "Symbol Table"; LSB "Symbol Versioning".
Result<Symbols> read_symbols(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::mpi
