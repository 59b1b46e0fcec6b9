// SPDX-License-Identifier: Apache-2.0
// Environment definition files (EDF) of CSCS's Container Engine: TOML that describes a container.
// Pure: callers read the files and know the variables.
// Source: https://docs.cscs.ch/software/container-engine/edf
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::edf {

/// A text and its place: "/home/me/.edf/pytorch.toml:3".
struct Text {
  std::string text;
  std::string place;
  bool operator==(const Text&) const = default;
};

/// The content of a file, with its texts unexpanded; or of several, combined by resolve().
struct Definition {
  std::vector<Text> bases;  ///< base_environment: names and paths of other files
  std::optional<Text> image;
  std::optional<Text> workdir;
  std::optional<bool> entrypoint;           ///< run the image's; none: do not
  std::optional<bool> writable;             ///< the root file system; none: yes
  std::vector<Text> mounts;                 ///< "SOURCE:DESTINATION[:FLAG+FLAG…]"
  std::vector<Text> devices;                ///< CDI names, or paths
  std::map<std::string, Text> variables;    ///< [env]; an empty one is removed
  std::map<std::string, Text> annotations;  ///< nested tables in [annotations] become "a.b.c"
  bool operator==(const Definition&) const = default;
};

/// Parses a file of at most 1 MiB; `document` names it in errors and places.
/// Errors: corrupt (invalid TOML), usage (an unknown key with the nearest, an invalid value); both
/// begin "pytorch.toml:3: ".
Result<Definition> parse(std::string_view text, std::string_view document);

}  // namespace berth::edf
