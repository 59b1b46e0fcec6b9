// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace berth::scan {

/// The family of interchangeable MPI libraries, by SONAME: "mpich" (libmpi.so.12, with MPICH, Intel
/// MPI, MVAPICH and Cray's), "openmpi" (libmpi.so.40 and before), "mpi-abi" (libmpi_abi.so.0, of
/// MPI 5). Empty: none of these. mpi/abi.hpp, which swaps libraries, looks at the symbols as well:
/// Open MPI 1.10 was libmpi.so.12 too. Source: MPICH ABI Compatibility Initiative; Open MPI's
/// VERSION files; MPI 5.0, chapter 20.
std::string_view mpi_family(std::string_view soname);

}  // namespace berth::scan
