// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "doctor/finding.hpp"
#include "engine/context/context.hpp"
#include "engine/node/match.hpp"

namespace berth::engine {

struct PreflightRequest {
  std::optional<std::string> image;  ///< none: only the node
  MatchRequest match;                ///< how to look the image up, and for which node
  std::optional<std::string> gpus;   ///< the value of --gpus; none: all
};

struct Preflight {
  std::vector<doctor::Answer> answers;
  bool refused = false;  ///< the job would end without doing its work
};

/// Whether a job with this image can do its work on a node. The finding "image.fit" is a warning if
/// the image needs GPUs and the node has none, and a problem if the node's GPUs, driver or
/// processor are unfit. "image.gpus" is a problem if the node has fewer GPUs than the job requests.
/// A problem means that the job is refused. Without a saved profile also checks what training over
/// several nodes needs on this machine (docs/slurm.md).
/// Errors: those of look_up(), match_node() and gpu::parse_request().
Result<Preflight> preflight(const Context& context, const PreflightRequest& request);

}  // namespace berth::engine
