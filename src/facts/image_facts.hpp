// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "facts/facts.hpp"
#include "scan/driver_files.hpp"

namespace berth::facts {

/// What an image's config says a container runs.
struct ImageCommand {
  std::vector<std::string> arguments;    ///< entrypoint, then command
  std::vector<std::string> environment;  ///< "K=V"
  std::string working_directory;         ///< empty: "/"
  std::string architecture;              ///< "amd64"
};

/// What a container of an image has: of `files`, which are those that it sees, and of the tree that
/// they are in. Every number is bounded; what is too much is left out, the main program's last.
/// Errors: io (of the tree alone).
Result<ImageFacts> draw_together(const scan::Tree& tree, const std::vector<FileFacts>& files,
                                 const ImageCommand& command);

}  // namespace berth::facts
