// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/dry_run.hpp"

#include "base/text.hpp"
#include "cli/core/text_width.hpp"
#include "engine/run/dry_run.hpp"

namespace berth::cli {
namespace {

json::Value to_json(const plan::Plan& plan) {
  json::Array steps;
  for (const plan::Step& step : plan.steps) {
    plan::Description description = plan::describe(step);
    json::Object members;
    for (const auto& [name, value] : description.members) members.emplace_back(name, value);
    steps.push_back(json::Object{
        {"name", description.name}, {"text", description.text}, {"members", std::move(members)}});
  }
  return json::Object{{"steps", std::move(steps)}, {"warnings", json_strings(plan.warnings)}};
}

std::string to_text(const plan::Plan& plan) {
  std::string text;
  size_t number = 0;
  for (const plan::Step& step : plan.steps) {
    text += pad_left(std::to_string(++number), 3) + "  " +
            escape_controls(plan::describe(step).text) + "\n";
  }
  return text;
}

}  // namespace

Result<int> dry_run(Session& session, engine::Asked asked, TransferDisplay& display,
                    std::string_view format) {
  plan::Plan plan = TRY(engine::plan_run(session.context, std::move(asked), display.progress()));
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
