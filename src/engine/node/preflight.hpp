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
  MatchRequest match;                ///< how to look it up, and for which node
  std::optional<std::string> gpus;   ///< the text of --gpus; none: all
};

struct Preflight {
  std::vector<doctor::Answer> answers;
  bool refused = false;  ///< the job would end without doing its work
};

/// Whether a job with this image can do its work on a node: "image.fit" is a warning if an image
/// for GPUs finds none, and a problem if its GPUs, driver or processor are unfit; "image.gpus" is a
/// problem if the node has fewer GPUs than the job requests; problems are refusals. For this
/// machine, unless a saved profile is given, also checks what training over several nodes needs
/// (docs/slurm.md).
/// Errors: those of look_up(), match_node() and gpu::parse_request().
Result<Preflight> preflight(const Context& context, const PreflightRequest& request);

}  // namespace berth::engine
