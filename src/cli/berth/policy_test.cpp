// SPDX-License-Identifier: Apache-2.0
#include "engine/system/policy.hpp"

#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

struct PolicyTestOptions {
  engine::PolicyTrial trial;
  std::string format = "table";
};

FlagTable policy_test_flags(PolicyTestOptions& o) {
  engine::PolicyTrial& t = o.trial;
  return {
      {"env", 'e', "NAME[=VALUE]", "As if the user had set this variable", &t.environment},
      {"feature", 0, "WORD", "As if the node had this feature, and no other", &t.supposed.features},
      format_flag(o.format),
      {"gpus", 0, "GPUS", "As if the user had asked for these GPUs", &t.gpus},
      {"group", 0, "GROUP", "As if the user were in this group", &t.supposed.groups},
      {"partition", 0, "NAME", "As if a job ran in this partition", &t.supposed.partition},
      {"user", 0, "USER", "As if this user had called, only in the given groups",
       &t.supposed.user}};
}

json::Value to_json(const engine::PolicyAnswer& answer) {
  json::Array rules, effects;
  for (const policy::Verdict& verdict : answer.outcome.verdicts) {
    rules.push_back(json::Object{{"rule", verdict.rule},
                                 {"from", verdict.place},
                                 {"applied", verdict.applied},
                                 {"why", verdict.why}});
  }
  for (const policy::EffectLine& line : policy::lines_of(answer.outcome.effects)) {
    effects.push_back(json::Object{
        {"key", line.key}, {"value", line.value}, {"rule", line.rule}, {"forced", line.forced}});
  }
  const auto& refusal = answer.refusal;
  return json::Object{{"image_known", answer.image_known},
                      {"refused", refusal ? json::Value(refusal->what) : json::Value()},
                      {"rules", std::move(rules)},
                      {"effects", std::move(effects)}};
}

std::string to_text(const engine::PolicyAnswer& answer) {
  Table rules({"FROM", "RULE", "APPLIES", "WHY"});
  for (const policy::Verdict& verdict : answer.outcome.verdicts) {
    std::string from = verdict.place.substr(verdict.place.rfind('/') + 1);
    std::string name = verdict.rule == from ? "-" : verdict.rule;
    rules.add({std::move(from), std::move(name), verdict.applied ? "yes" : "no", verdict.why});
  }
  Table effects({"GIVES", "VALUE", "FORCED", "RULE"});
  auto lines = policy::lines_of(answer.outcome.effects);
  for (const policy::EffectLine& line : lines) {
    effects.add({line.key, line.value, line.forced ? "yes" : "no", line.rule});
  }
  std::string text = rules.text();
  if (!lines.empty()) text += "\n" + effects.text();
  if (answer.refusal) text += "\nRefused: " + answer.refusal->what + "\n";
  return text;
}

Result<int> run_policy_test(Session& session, const PolicyTestOptions& o, Arguments arguments) {
  engine::PolicyTrial trial = o.trial;
  trial.image = arguments[0];
  trial.command.assign(arguments.begin() + 1, arguments.end());
  engine::PolicyAnswer answer = TRY(engine::try_policy(session.context, trial));
  if (!answer.image_known) {
    session.report.warn(
        "the image is not in the store, so its labels, variables and command are not known; see "
        "'berth pull', ignoring the rules that need them");
  }
  if (o.format == "json") {
    print_json(session, to_json(answer));
  } else {
    print(session, to_text(answer));
  }
  return 0;
}

}  // namespace

const Verb policy_test_verb{
    .text = {.name = "policy test",
             .arguments = "IMAGE [COMMAND...]",
             .summary = "Show which site rules would apply to a container, and what they change",
             .example = "berth policy test --user alice --partition gpu busybox",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,  // an image file is shown there
    .flags_end = FlagsEnd::at_first_argument,
    .command = [] { return make_command(policy_test_flags, run_policy_test); },
};

}  // namespace berth::cli
