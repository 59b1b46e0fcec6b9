// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "json/value.hpp"

namespace berth::cli::oci {
namespace {

struct PlanOptions {
  LaunchOptions launch;
  std::string format = "text";
};

FlagTable plan_flags(PlanOptions& o) {
  FlagTable table = launch_flags(o.launch);
  table.push_back(
      choice_flag("format", "FORMAT", "As text or as json", &o.format, {"text", "json"}));
  return table;
}

json::Value as_json(const plan::Description& step) {
  json::Object object;
  object.emplace_back("step", step.name);
  object.emplace_back("text", step.text);
  for (const auto& [name, value] : step.members) object.emplace_back(name, value);
  return object;
}

Result<int> run_plan(Session& session, const PlanOptions& options, const Arguments& arguments) {
  runtime::LaunchRequest request = TRY(to_request(session, options.launch, arguments[0]));
  plan::Plan plan = TRY(runtime::plan_bundle(request));
  for (const auto& warning : plan.warnings) session.log.warn(warning);
  json::Array steps;
  for (const auto& step : plan.steps) {
    plan::Description description = plan::describe(step);
    if (options.format == "json") {
      steps.push_back(as_json(description));
    } else {
      session.out += description.text + "\n";
    }
  }
  if (options.format == "json") session.out = json::dump(json::Value(std::move(steps)), 2) + "\n";
  return 0;
}

}  // namespace

const Verb plan_verb{
    .text = {.name = "plan",
             .arguments = "ID",
             .summary = "Print what run would do, and do nothing",
             .example = "berth-runtime plan --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(plan_flags, run_plan); },
};

}  // namespace berth::cli::oci
