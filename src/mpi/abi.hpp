// SPDX-License-Identifier: Apache-2.0
// Classifies MPI libraries, and decides whether one may replace another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "mpi/libraries.hpp"

namespace berth::mpi {

/// Libraries of one family have one ABI, if their major versions agree.
enum class Family {
  unknown,
  mpich,     ///< of the MPICH ABI Compatibility Initiative: MPICH ≥ 3.1, Intel MPI ≥ 5, Cray's,
             ///< MVAPICH ≥ 2, ParaStation MPI ≥ 5.1.7
  openmpi,   ///< Open MPI
  standard,  ///< libmpi_abi, the ABI of MPI 5
};

struct Abi {
  Family family = Family::unknown;
  std::string soname;  ///< "libmpi.so.40"
  /// From the name of the file to which the symlinks lead, "libmpi.so.40.30.4", or else from the
  /// SONAME.
  std::vector<uint64_t> numbers;
  std::string version;  ///< of the MPI implementation, if the library contains it: "4.1.4"
  bool operator==(const Abi&) const = default;
};

/// Classifies the core library of an MPI. libmpi.so.12 is the SONAME of MPICH and was that of Open
/// MPI 1.10; the symbols that the library needs and defines tell them apart. The family of other
/// libraries is unknown.
/// Source: MPICH ABI Compatibility Initiative; Open MPI's VERSION files; MPI 5.0, chapter 20.
Abi classify(const Library& library);

/// "Open MPI 4.1.4, libmpi.so.40 (40.30.4)".
std::string describe(const Abi& abi);
std::string_view name_of(Family family);  ///< "Open MPI", "MPICH ABI", …

/// How similar the version numbers of two libraries of one family have to be.
enum class Rule {
  major,   ///< equal first numbers
  full,    ///< like `major`, with a warning if the host's second number is lower
  strict,  ///< equal first and second numbers
};
constexpr EnumNames<Rule, 3> names_of(std::type_identity<Rule>) {
  return {{{Rule::major, "major"}, {Rule::full, "full"}, {Rule::strict, "strict"}}};
}

struct Verdict {
  bool fits = false;
  std::string why;      ///< if it does not fit: the reason
  std::string warning;  ///< if it fits: a remark, or empty
};
/// Whether the host's library may replace the image's. Pure.
/// Source: Sarus, "MPI hook", MPI_COMPATIBILITY_TYPE.
Verdict compare(const Abi& image, const Abi& host, Rule rule);

}  // namespace berth::mpi
