// SPDX-License-Identifier: Apache-2.0
// Whether the host's MPI can stand in the place of an image's, and what has to come with it.
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

/// A library of the host that a container gets.
struct Brought {
  std::string host_path;           ///< without links
  std::vector<std::string> names;  ///< SONAMEs that it is found by: its own first
  std::vector<std::string> over;   ///< files of the image that it is laid over
  std::string why;
};

/// A line for whoever asks why.
struct Note {
  std::string object;
  bool given = false;
  std::string why;
  std::string host_path;
};

/// What becomes of the MPIs of an image.
struct Decision {
  std::vector<Brought> libraries;        ///< empty: the image's stay
  std::vector<std::string> directories;  ///< of the host, to be seen at the same path
  bool openmpi = false;                  ///< one of those that were exchanged is Open MPI
  bool has_mpi = false;                  ///< the image has one at all
  std::string why;                       ///< in one line: by what, or why not
  std::string own_stays;                 ///< why the MPI of the program itself was not exchanged
  std::optional<Used> own;               ///< what the program uses after all of that; none known
  std::vector<Note> notes;
  std::vector<std::string> warnings;
  bool swapped() const { return !libraries.empty(); }
};

struct Question {
  Rule rule = Rule::major;
  std::string program;  ///< absolute, in the image; empty: nobody knows what will run
};

/// Holds each MPI of the image against those of the host, the first that fits is taken. A library
/// of the host comes along
/// - always, where it is of one piece with its MPI or of the fabric below;
/// - else where the image's own does not have what is asked for, or there is none;
/// - never, where it is glibc's: what the others need of that the image has to have, version by
///   version.
/// Every number is bounded by those of Libraries.  Errors: io (of the trees alone).
Result<Decision> decide(Libraries& image, Libraries& host, const Question& question);

}  // namespace berth::mpi
