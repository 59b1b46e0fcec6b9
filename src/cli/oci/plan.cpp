// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "json/value.hpp"

namespace berth::cli::oci {
namespace {

struct PlanOptions {
  LaunchOptions launch;
  bool create = false;
  std::string format = "text";
};

FlagTable plan_flags(PlanOptions& o) {
  FlagTable table = launch_flags(o.launch);
  table.push_back({"create", 0, "", "The plan of create, which waits for start", &o.create});
  table.push_back(
      choice_flag("format", "FORMAT", "Output format: text or json", &o.format, {"text", "json"}));
  return table;
}

json::Value as_json(const plan::Step& step) {
  plan::Description description = plan::describe(step);
  json::Object members;
  for (const auto& [name, value] : description.members) members.emplace_back(name, value);
  return json::Object{
      {"name", description.name}, {"text", description.text}, {"members", std::move(members)}};
}

json::Value as_json(const plan::Plan& plan) {
  json::Array steps, warnings;
  for (const auto& step : plan.steps) steps.push_back(as_json(step));
  for (const auto& warning : plan.warnings) warnings.emplace_back(warning);
  return json::Object{{"steps", std::move(steps)}, {"warnings", std::move(warnings)}};
}

Result<int> run_plan(Session& session, const PlanOptions& options, const Arguments& arguments) {
  runtime::LaunchRequest request = TRY(to_request(session, options.launch, arguments[0]));
  request.await_start = options.create;
  plan::Plan plan = TRY(runtime::plan_bundle(request));
  if (options.format == "json") {
    session.out = json::dump(as_json(plan), 2) + "\n";
    return 0;
  }
  for (const auto& warning : plan.warnings) session.log.warn(warning);
  for (const auto& step : plan.steps) session.out += plan::describe(step).text + "\n";
  return 0;
}

}  // namespace

const Verb plan_verb{
    .text = {.name = "plan",
             .arguments = "ID",
             .summary = "Show what 'run' would do, without doing it",
             .example = "berth-runtime plan --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(plan_flags, run_plan); },
};

}  // namespace berth::cli::oci
