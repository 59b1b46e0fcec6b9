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
  std::optional<std::string> image;  ///< none: the node alone
  MatchRequest match;                ///< how it is looked up, and for which node
  std::optional<std::string> gpus;   ///< the text of --gpus; none: as many as there are
};

struct Preflight {
  std::vector<doctor::Answer> answers;
  bool refused = false;  ///< the job would end without its work done
};

/// Whether a job with this image does its work on a node: "image.fit" is a warning where an image
/// for GPUs finds none, a problem where its GPUs, driver or processor are unfit, "image.gpus" one
/// where fewer GPUs are there than the job asks for; both are refusals. Of this machine, unless a
/// saved profile is asked about, also what training over several nodes needs (docs/slurm.md).
/// Errors: those of look_up(), match_node() and gpu::parse_request().
Result<Preflight> preflight(const Context& context, const PreflightRequest& request);

}  // namespace berth::engine
