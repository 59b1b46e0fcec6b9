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
  std::vector<std::string> names;  ///< SONAMEs under which it is found: its own first
  std::vector<std::string> over;   ///< files of the image that it covers
  std::string why;
};

/// A line of explanation.
struct Note {
  std::string object;
  bool given = false;
  std::string why;
  std::string host_path;
};

/// The decision about the MPIs of an image.
struct Decision {
  std::vector<Brought> libraries;        ///< empty: the image's stay
  std::vector<std::string> directories;  ///< of the host, to be visible at the same path
  bool openmpi = false;                  ///< one of the replaced ones is Open MPI
  bool has_mpi = false;                  ///< the image has one at all
  std::string why;                       ///< in one line: the replacement, or the reason against it
  std::string own_stays;                 ///< why the program's own MPI was not replaced
  std::optional<Used> own;               ///< the program's MPI afterwards; none: unknown
  std::vector<Note> notes;
  std::vector<std::string> warnings;
  bool swapped() const { return !libraries.empty(); }
};

struct Question {
  Rule rule = Rule::major;
  std::string program;  ///< absolute, in the image; empty: unknown
};

/// Compares each MPI of the image with those of the host; the first that fits is used. A library of
/// the host comes along
/// - always, if it belongs to the MPI installation or to the fabric below;
/// - else if the image has none, or its own lacks required symbols;
/// - never, if it is glibc's: the image has to have the versions that the others require.
/// Every number is bounded by those of Libraries.  Errors: io (of the trees only).
Result<Decision> decide(Libraries& image, Libraries& host, const Question& question);

}  // namespace berth::mpi
