// SPDX-License-Identifier: Apache-2.0
// Environment definition files (EDF) of CSCS's Container Engine: TOML that describes a container.
// Pure: callers read the files and provide the variables.
// Source: https://docs.cscs.ch/software/container-engine/edf
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::edf {

/// A string and where it was found: "/home/me/.edf/pytorch.toml:3".
struct Text {
  std::string text;
  std::string place;
  bool operator==(const Text&) const = default;
};

/// The content of a file, with variables not yet expanded, or the content of several files,
/// combined by resolve().
struct Definition {
  std::vector<Text> bases;  ///< base_environment: names and paths of other files
  std::optional<Text> image;
  std::optional<Text> workdir;
  std::optional<bool> entrypoint;           ///< whether to run the image's entrypoint; none: no
  std::optional<bool> writable;             ///< whether the root file system is; none: yes
  std::vector<Text> mounts;                 ///< "SOURCE:DESTINATION[:FLAG+FLAG…]"
  std::vector<Text> devices;                ///< CDI names, or paths
  std::map<std::string, Text> variables;    ///< [env]; an empty variable is removed
  std::map<std::string, Text> annotations;  ///< nested tables in [annotations] become "a.b.c"
  bool operator==(const Definition&) const = default;
};

/// Parses a file of at most 1 MiB; `document` names it in errors and places.
/// Errors: corrupt (invalid TOML), usage (an unknown key, suggesting the nearest one; an invalid
/// value). Both begin with "pytorch.toml:3: ".
Result<Definition> parse(std::string_view text, std::string_view document);

}  // namespace berth::edf
