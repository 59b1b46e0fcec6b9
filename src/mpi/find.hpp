// SPDX-License-Identifier: Apache-2.0
// Finds the MPIs of a root file system, and the files that belong to their libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mpi/abi.hpp"
#include "mpi/libraries.hpp"

namespace berth::mpi {

/// One MPI, identified by its core library, which all MPI programs need.
struct Installation {
  Abi abi;
  const Library* core = nullptr;
  std::string directory;  ///< of the core library
};

/// All MPIs, in this order: those in `first` (directories, joined by ':', such as the RPATH of a
/// program), those that the loader finds, and those in the usual directories of distributions,
/// vendors and vendors' images. Errors: io (of the tree only).
Result<std::vector<Installation>> find_mpi(Libraries& libraries, const std::string& first = "");

/// The MPIs that `program` is linked with, directly or through its libraries. If there are several,
/// it is unknown which one the program initialises. Errors: io (of the tree only).
Result<std::vector<Installation>> find_mpi_of(Libraries& libraries, const Library& program);

/// Whether `program` itself calls MPI. An MPI that is linked only through another library may never
/// be used: Gloo, and thus PyTorch, links one that it does not initialise.
bool calls_mpi(const Library& program);

/// The SONAMEs of the other libraries of an MPI with this ABI, such as those for Fortran. Each
/// inner list has equivalent names. For major version 40: {{"libmpi_cxx.so.40"}, …}.
std::vector<std::vector<std::string>> companions(const Abi& abi);

/// Whether a library is part of an MPI or of a fabric, and so has to come from the host together
/// with the host's MPI: libopen-pal, libfabric, libucp, libpmix, …
bool is_of_one_piece(std::string_view soname);
/// Whether a library belongs to glibc: the image's glibc is always used.
bool is_of_libc(std::string_view soname);

/// Whether a library belongs to a GPU driver: its version has to match the kernel module.
bool is_of_driver(std::string_view soname);

/// The directories from which `library` of `tree` opens files at run time: plugins and their
/// configuration. Errors: io (of the tree only).
Result<std::vector<std::string>> directories_of(const scan::Tree& tree, const Library& library);

}  // namespace berth::mpi
