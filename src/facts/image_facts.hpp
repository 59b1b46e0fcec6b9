// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "facts/facts.hpp"
#include "scan/driver_files.hpp"

namespace berth::facts {

/// The command that an image's config defines.
struct ImageCommand {
  std::vector<std::string> arguments;    ///< entrypoint, then command
  std::vector<std::string> environment;  ///< "K=V"
  std::string working_directory;         ///< empty: "/"
  std::string architecture;              ///< "amd64"
};

/// The facts of an image as a container sees it, from its visible `files` and their `tree`. Every
/// list is bounded. What exceeds a bound is left out, but entries about the main program are kept
/// before others.
/// Errors: io (of the tree only).
Result<ImageFacts> draw_together(const scan::Tree& tree, const std::vector<FileFacts>& files,
                                 const ImageCommand& command);

}  // namespace berth::facts
