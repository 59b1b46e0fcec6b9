// SPDX-License-Identifier: Apache-2.0
// The arguments of the plugin in plugstack.conf (docs/slurm.md).
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::spank {

struct Site {
  std::string program = BERTH_PROGRAM;
  std::string scope = "global";
  bool entrypoint = false;
  bool batch = true;
  bool one_fetch = true;    ///< one fetch of an image for all nodes of a step
  int epilog_seconds = 60;  ///< timeout for removing a job's leftovers
};

/// Parses "NAME=VALUE" arguments; accepts those of pyxis that have no meaning here, too. Errors:
/// usage; begins with "plugstack.conf".
Result<void> take_arguments(int argc, char** argv, Site& site);

}  // namespace berth::spank
