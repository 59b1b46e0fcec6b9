// SPDX-License-Identifier: Apache-2.0
// Decides whether the host's MPI can replace an image's, and which files have to come with it.
// Asked only for --mpi auto and host; engine/decide/mpi.cpp has the mode.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "mpi/abi.hpp"
#include "mpi/find.hpp"
#include "mpi/libraries.hpp"
#include "mpi/wire.hpp"

namespace berth::mpi {

/// A library of the host for a container.
struct Brought {
  std::string host_path;           ///< without links
  std::vector<std::string> names;  ///< SONAMEs by which it is found; its own one is first
  std::vector<std::string> over;   ///< files of the image over which it is mounted
  std::string why;
};

/// A line of explanation.
struct Note {
  std::string object;
  bool given = false;
  std::string why;
  std::string host_path;
};

/// The decision about the MPIs in an image.
struct Decision {
  std::vector<Brought> libraries;        ///< empty: the image keeps its libraries
  std::vector<std::string> directories;  ///< of the host, to be mounted at the same path
  bool openmpi = false;                  ///< one of the replaced MPIs is Open MPI
  bool has_mpi = false;                  ///< the image has an MPI
  std::string why;                       ///< one line: the replacement, or why there is none
  std::string own_stays;                 ///< why the MPI that the program uses was not replaced
  std::optional<Used> own;               ///< the MPI that the program uses afterwards; none:
                                         ///< unknown
  std::vector<Note> notes;
  std::vector<std::string> warnings;
  bool swapped() const { return !libraries.empty(); }
};

struct Question {
  Rule rule = Rule::major;
  std::string program;  ///< absolute, in the image; empty: unknown
};

/// Compares each MPI of the image with those of the host; the first one that fits is used.
/// Libraries that it needs come from the host as follows:
/// - always, if the library belongs to the MPI installation or to the fabric below it;
/// - else if the image does not have the library, or the image's one lacks required symbols;
/// - never, if it belongs to glibc: the image's glibc has to have the versions that the others
///   require.
/// The limits of Libraries bound the work. Errors: io (of the trees only).
Result<Decision> decide(Libraries& image, Libraries& host, const Question& question);

}  // namespace berth::mpi
