// SPDX-License-Identifier: Apache-2.0
// The MPIs of a root file system, and what lies beside their libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mpi/abi.hpp"
#include "mpi/libraries.hpp"

namespace berth::mpi {

/// One MPI, by the library that every program of it needs.
struct Installation {
  Abi abi;
  const Library* core = nullptr;
  std::string directory;  ///< of that library
};

/// Those of `first` (directories, joined by ':', such as a program's RPATH), those that the loader
/// finds, in its order, then those of the directories that distributions, vendors and their images
/// have.  Errors: io (of the tree alone).
Result<std::vector<Installation>> find_mpi(Libraries& libraries, const std::string& first = "");

/// Those that `program` is linked with, itself or by its libraries. Of more than one it is not
/// known which of them is initialised.  Errors: io (of the tree alone).
Result<std::vector<Installation>> find_mpi_of(Libraries& libraries, const Library& program);

/// Whether `program` calls its MPI itself. What another library of it is linked with it may never
/// use: Gloo, and so PyTorch, has an MPI that nobody starts.
bool calls_mpi(const Library& program);

/// The SONAMEs of a library beside the core, such as Fortran's, that one of this ABI may have, each
/// list with the names that mean the same. With `major` 40: {{"libmpi_cxx.so.40"}, …}.
std::vector<std::vector<std::string>> companions(const Abi& abi);

/// Libraries that belong to an MPI or to the fabric below it, and that have to be of one piece with
/// the host's: libopen-pal, libfabric, libucp, libpmix, …
bool is_of_one_piece(std::string_view soname);
/// Those of glibc itself, which are always the image's.
bool is_of_libc(std::string_view soname);

/// Whether it is a part of a GPU's driver, which goes with the kernel's.
bool is_of_driver(std::string_view soname);

/// The directories that `library` of `tree` opens files of by itself: plugins, and what they are
/// configured by.  Errors: io (of the tree alone).
Result<std::vector<std::string>> directories_of(const scan::Tree& tree, const Library& library);

}  // namespace berth::mpi
