// SPDX-License-Identifier: Apache-2.0
// The names that an ELF file has and needs, with the versions that glibc's loader insists on.
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

/// A version that a file asks another one for: without it the loader refuses the file.
struct VersionNeed {
  std::string library;  ///< "libc.so.6"
  std::string version;  ///< "GLIBC_2.38"
  std::string symbol;   ///< one that is asked for in this version; empty: no table says
  bool operator==(const VersionNeed&) const = default;
};

struct Symbols {
  Names defined;
  Names undefined;                 ///< but for weak ones, which may stay so
  Names offers;                    ///< versions that it defines: "GLIBC_2.34"
  std::vector<VersionNeed> needs;  ///< but for weak ones
  std::string mpi_version;  ///< of the text that MPICH and Open MPI keep: "4.1.4"; empty: none
};

/// Reads the tables of the dynamic section; of a file without them nothing is found.
/// Errors: unsupported (32 bits), corrupt (a table leads outside of the file, or is longer than any
/// that a linker writes), those of `read_at`.
/// Source: gABI "Symbol Table"; LSB "Symbol Versioning".
Result<Symbols> read_symbols(const scan::ElfFile& elf, const scan::ReadAt& read_at);

}  // namespace berth::mpi
