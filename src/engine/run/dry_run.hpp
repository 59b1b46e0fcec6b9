// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/asked.hpp"
#include "engine/decide/explain.hpp"
#include "engine/image/transfer.hpp"

/// Prints what run() would do. Starts nothing, and leaves nothing behind except missing images that
/// it pulled.  Errors: as run().
namespace berth::engine {

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
Result<PlannedRun> plan_run(const Context& context, Asked asked, const Progress& progress);

/// The GPUs that the container would get, and the reasons.
Result<Explained> explain_run(const Context& context, Asked asked, const Progress& progress);

}  // namespace berth::engine
