// SPDX-License-Identifier: Apache-2.0
// Finds the MPIs of a root file system, and the files beside their libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mpi/abi.hpp"
#include "mpi/libraries.hpp"

namespace berth::mpi {

/// One MPI, identified by the core library that all its programs need.
struct Installation {
  Abi abi;
  const Library* core = nullptr;
  std::string directory;  ///< of that library
};

/// In this order: those in `first` (directories, joined by ':', such as a program's RPATH), those
/// that the loader finds, and those in the usual directories of distributions, vendors and their
/// images.  Errors: io (of the tree only).
Result<std::vector<Installation>> find_mpi(Libraries& libraries, const std::string& first = "");

/// The MPIs that `program` is linked with, directly or through its libraries. If there are several,
/// which one is initialised is unknown.  Errors: io (of the tree only).
Result<std::vector<Installation>> find_mpi_of(Libraries& libraries, const Library& program);

/// Whether `program` calls its MPI itself. An MPI linked through another library may never be used:
/// Gloo, and so PyTorch, has one that is not initialised.
bool calls_mpi(const Library& program);

/// The SONAMEs of libraries beside the core, such as Fortran's, for this ABI, each list with
/// equivalent names. With `major` 40: {{"libmpi_cxx.so.40"}, …}.
std::vector<std::vector<std::string>> companions(const Abi& abi);

/// Whether it is a library of an MPI or of its fabric that has to come from the same installation
/// as the host's: libopen-pal, libfabric, libucp, libpmix, …
bool is_of_one_piece(std::string_view soname);
/// Whether it belongs to glibc, which is always the image's.
bool is_of_libc(std::string_view soname);

/// Whether it belongs to a GPU driver, which has to match the kernel's.
bool is_of_driver(std::string_view soname);

/// The directories from which `library` of `tree` opens files itself: plugins, and their
/// configuration.  Errors: io (of the tree only).
Result<std::vector<std::string>> directories_of(const scan::Tree& tree, const Library& library);

}  // namespace berth::mpi
