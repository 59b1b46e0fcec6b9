// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/dry_run.hpp"

#include "base/text.hpp"
#include "cli/core/text_width.hpp"
#include "engine/run/run.hpp"

namespace berth::cli {
namespace {

json::Value to_json(const engine::PlannedRun& plan) {
  json::Array steps;
  for (const engine::PlannedStep& step : plan.steps) {
    json::Object members;
    for (const auto& [name, value] : step.members) members.emplace_back(name, value);
    steps.push_back(
        json::Object{{"name", step.name}, {"text", step.text}, {"members", std::move(members)}});
  }
  return json::Object{{"steps", std::move(steps)}, {"warnings", json_strings(plan.warnings)}};
}

std::string to_text(const engine::PlannedRun& plan) {
  std::string text;
  size_t number = 0;
  for (const engine::PlannedStep& step : plan.steps) {
    text += pad_left(std::to_string(++number), 3) + "  " + escape_controls(step.text) + "\n";
  }
  return text;
}

}  // namespace

Result<int> dry_run(Session& session, engine::Asked asked, TransferDisplay& display,
                    std::string_view format) {
  engine::PlannedRun plan =
      TRY(engine::plan_run(session.context, std::move(asked), display.progress()));
  display.finish();
  if (format == "json") {
    print_json(session, to_json(plan));
    return 0;
  }
  for (const std::string& warning : plan.warnings) session.report.warn(warning);
  print(session, to_text(plan));
  return 0;
}

}  // namespace berth::cli
