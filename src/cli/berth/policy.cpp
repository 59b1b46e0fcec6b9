// SPDX-License-Identifier: Apache-2.0
#include "engine/system/policy.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

// ---- policy show --------------------------------------------------------------------------------

json::Value to_json(const engine::PolicyInForce& policy) {
  json::Array keys;
  for (const engine::PolicyKey& key : policy.keys) {
    keys.emplace_back(json::Object{{"key", key.key}, {"from", key.from}});
  }
  const std::string& source = policy.compiled.source;
  return json::Object{{"source", source.empty() ? json::Value() : json::Value(source)},
                      {"stale", policy.stale ? json::Value(*policy.stale) : json::Value()},
                      {"policy", json::to_value(policy.compiled.policy)},
                      {"keys", std::move(keys)},
                      {"rules", json::to_value(policy.compiled.rules)}};
}

Result<int> run_policy_show(Session& session, const FormatOptions& o, Arguments) {
  engine::PolicyInForce policy = TRY(engine::show_policy(session.context));
  if (o.format == "json") {
    print_json(session, to_json(policy));
    return 0;
  }
  Table table({"KEY", "VALUE", "FROM"});
  for (const engine::PolicyKey& key : policy.keys) table.add({key.key, key.value, key.from});
  print(session, table.text());
  if (!policy.compiled.rules.empty()) {
    Table rules({"RULE", "FROM"});
    for (const auto& rule : policy.compiled.rules) rules.add({policy::title_of(rule), rule.place});
    print(session, "\n" + rules.text());
  }
  if (policy.stale) {
    session.report.warn("policy.toml differs from the policy in force: " + *policy.stale +
                        "; see 'berth policy apply', using the policy above instead");
  }
  return 0;
}

// ---- policy test --------------------------------------------------------------------------------

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
      {"user", 0, "USER", "As if this user were the caller, in no group but those of --group",
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

// ---- policy lint --------------------------------------------------------------------------------

Result<int> run_policy_lint(Session& session, const NoOptions&, Arguments arguments) {
  std::vector<Error> faults = TRY(engine::check_policy(session.context, arguments));
  for (const Error& fault : faults) session.report.error(fault);
  return faults.empty() ? 0 : 1;
}

// ---- policy apply -------------------------------------------------------------------------------

Result<int> run_policy_apply(Session& session, const NoOptions&, Arguments) {
  print(session, TRY(engine::apply_policy(session.context)) + "\n");
  return 0;
}

// ---- policy import ------------------------------------------------------------------------------

Result<engine::PolicyForm> form_of(const std::string& word) {
  if (word == "nvidia-container-runtime") return engine::PolicyForm::toolkit;
  if (word == "houdini") return engine::PolicyForm::houdini;
  return make_error(Kind::usage, "no configuration " + quote(word) + " can be imported",
                    "nvidia-container-runtime, houdini");
}

Result<int> run_policy_import(Session& session, const NoOptions&, Arguments arguments) {
  engine::PolicyForm form = engine::PolicyForm::any;
  if (arguments.size() == 2) form = TRY(form_of(arguments[0]));
  print(session, TRY(engine::import_policy(arguments.back(), form)));
  return 0;
}

}  // namespace

const Verb policy_show_verb{
    .text = {.name = "policy show",
             .summary = "Show the site policy in force, and where each value comes from",
             .example = "berth policy show"},
    .store = Store::none,
    .command = [] { return make_command(format_flags, run_policy_show); },
};
const Verb policy_test_verb{
    .text = {.name = "policy test",
             .arguments = "IMAGE [COMMAND...]",
             .summary = "Show which site rules would apply to a container, and what they change",
             .example = "berth policy test --user alice --partition gpu busybox",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,  // an image file is mounted in it
    .flags_end = FlagsEnd::at_first_argument,
    .command = [] { return make_command(policy_test_flags, run_policy_test); },
};
const Verb policy_lint_verb{
    .text = {.name = "policy lint",
             .arguments = "[FILE...]",
             .summary = "Check the site policy, or the given files, for errors",
             .example = "berth policy lint policy.d/10-scratch.toml",
             .complete = Complete::file},
    .arity = {},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_policy_lint); },
};
const Verb policy_apply_verb{
    .text = {.name = "policy apply",
             .summary = "Put the site's policy.toml into force",
             .example = "berth policy apply"},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_policy_apply); },
};
const Verb policy_import_verb{
    .text = {.name = "policy import",
             .arguments = "[nvidia-container-runtime|houdini] FILE",
             .summary = "Convert another program's configuration into a site policy",
             .example = "berth policy import nvidia-container-runtime "
                        "/etc/nvidia-container-runtime/config.toml",
             .complete = Complete::file},
    .arity = {1, 2},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_policy_import); },
};

}  // namespace berth::cli
