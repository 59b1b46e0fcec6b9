// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/explain.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/image/transfer.hpp"
#include "engine/state/outcome.hpp"

namespace berth::engine {

/// Pulls the image if necessary, creates the container and starts it. In the foreground, returns
/// when the container has ended, and meanwhile passes on signals that other processes send to this
/// one. Detached, returns when the command runs.
/// On failure nothing of the container is left.
/// Errors: not_found (image, user, working directory), exists (the name), usage, denied,
/// unsupported, and those of pulling and of berth-runtime.
Result<RunOutcome> run(const Context& context, Asked asked, const Progress& progress);

struct PlannedStep {
  std::string name;  ///< "mount_bind"
  std::string text;  ///< one line for users
  std::map<std::string, std::string> members;
};
template <class V>
void fields(V& v, PlannedStep& step) {
  v.required("name", step.name);
  v.required("text", step.text);
  v.required("members", step.members);
}
struct PlannedRun {
  std::vector<PlannedStep> steps;  ///< in the order of execution
  std::vector<std::string> warnings;
};
template <class V>
void fields(V& v, PlannedRun& plan) {
  v.required("steps", plan.steps);
  v.required("warnings", plan.warnings);
}

/// The steps that berth-runtime would execute: its own plan for the config that run() would write.
/// Starts nothing, and leaves nothing behind except images that were missing and have been pulled.
/// The same is true for explain_run().  Errors: as run().
Result<PlannedRun> plan_run(const Context& context, Asked asked, const Progress& progress);

/// The GPUs that the container would get, and the reasons.
Result<Explained> explain_run(const Context& context, Asked asked, const Progress& progress);

}  // namespace berth::engine
