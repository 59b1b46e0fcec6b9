// SPDX-License-Identifier: Apache-2.0
// Environment definition files (EDF) of CSCS's Container Engine: TOML that says what a container
// is. Pure: others read the files and know the variables.
// Source: https://docs.cscs.ch/software/container-engine/edf
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::edf {

/// A text and where it stands: "/home/me/.edf/pytorch.toml:3".
struct Text {
  std::string text;
  std::string place;
  bool operator==(const Text&) const = default;
};

/// What a file says, its texts as they are written; or several of them, by resolve().
struct Definition {
  std::vector<Text> bases;  ///< base_environment: names and paths of other files
  std::optional<Text> image;
  std::optional<Text> workdir;
  std::optional<bool> entrypoint;           ///< the image's is run; none: it is not
  std::optional<bool> writable;             ///< the root file system; none: it is
  std::vector<Text> mounts;                 ///< "SOURCE:DESTINATION[:FLAG+FLAG…]"
  std::vector<Text> devices;                ///< names of CDI, or paths
  std::map<std::string, Text> variables;    ///< [env]; an empty one is taken away
  std::map<std::string, Text> annotations;  ///< tables in [annotations] have become "a.b.c"
  bool operator==(const Definition&) const = default;
};

/// Reads one file of at most 1 MiB; `document` names it in errors and places.
/// Errors: corrupt (no TOML), usage (an unknown key with the nearest, a value that is none); both
/// begin "pytorch.toml:3: ".
Result<Definition> parse(std::string_view text, std::string_view document);

}  // namespace berth::edf
