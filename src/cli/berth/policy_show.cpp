// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "engine/system/policy.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

struct PolicyShowOptions {
  std::string format = "table";
};

FlagTable policy_show_flags(PolicyShowOptions& o) {
  return {format_flag(o.format)};
}

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

Result<int> run_policy_show(Session& session, const PolicyShowOptions& o, Arguments) {
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

}  // namespace

const Verb policy_show_verb{
    .text = {.name = "policy show",
             .summary = "Show the site policy in force, and where each value comes from",
             .example = "berth policy show"},
    .store = Store::none,
    .command = [] { return make_command(policy_show_flags, run_policy_show); },
};

}  // namespace berth::cli
