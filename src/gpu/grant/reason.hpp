// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::gpu {

/// Why a container has something, or lacks it: for `--debug`, `berth explain` and `berth run
/// --explain`.
struct Reason {
  std::string kind;       ///< "gpu", "node", "library", "binary", "variable", "requirement", …
  std::string object;     ///< the subject: "/dev/nvidia0", "libnvidia-ml.so.1"
  bool given = true;      ///< whether the container has it
  std::string why;        ///< "--gpus all", "capability graphics was not asked for"
  std::string host_path;  ///< the source on the host; empty if it adds no information
};

}  // namespace berth::gpu
