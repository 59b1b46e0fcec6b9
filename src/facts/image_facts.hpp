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

/// The facts of an image's container: from `files`, the visible ones, and their tree. Every number
/// is bounded; the excess is left out, the main program's last.
/// Errors: io (of the tree only).
Result<ImageFacts> draw_together(const scan::Tree& tree, const std::vector<FileFacts>& files,
                                 const ImageCommand& command);

}  // namespace berth::facts
