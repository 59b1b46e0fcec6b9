// SPDX-License-Identifier: Apache-2.0
// What plugstack.conf says behind the path of the plugin (docs/slurm.md).
#pragma once

#include <string>

#include "base/result.hpp"

namespace berth::spank {

struct Site {
  std::string program = BERTH_PROGRAM;
  std::string scope = "global";
  bool entrypoint = false;
  bool batch = true;
  bool one_fetch = true;    ///< of an image for all nodes of a step
  int epilog_seconds = 60;  ///< for the removal of what a job has left
};

/// "NAME=VALUE" each; pyxis's that have nothing to do here are taken, too.
/// Errors: usage, behind the name of the file.
Result<void> take_arguments(int argc, char** argv, Site& site);

}  // namespace berth::spank
