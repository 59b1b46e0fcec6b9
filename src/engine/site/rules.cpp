// SPDX-License-Identifier: Apache-2.0
#include "engine/site/rules.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "engine/request/environment.hpp"
#include "engine/site/effects.hpp"
#include "engine/site/facts.hpp"
#include "image/reference.hpp"
#include "oci/edit.hpp"
#include "policy/policy.hpp"
#include "slurm/hold.hpp"

namespace berth::engine {
namespace {

using policy::Given;
using Strings = std::vector<std::string>;

Result<policy::Compiled> read_policy(const Context& context) {
  return TRY_CTX(policy::read_compiled(context.paths.config),
                 "cannot read the policy of this machine");
}

Result<std::vector<policy::PlacedRule>> rules_of(const Context& context) {
  return std::move(TRY(read_policy(context)).rules);
}

/// The origins of an image, which are compared with `registries`. An image made on this machine has
/// the origin "localhost", since its name proves nothing.
Result<Strings> origins_of(const RunRequest& request, const image::Image* image) {
  if (image == nullptr) return Strings{TRY(image::Reference::parse(request.image)).place()};
  Strings out;
  for (const image::Reference& source : image->sources) out.push_back(source.place());
  if (!out.empty()) return out;
  for (const image::Reference& name : image->references) {
    out.push_back("localhost/" + name.repository());
  }
  if (out.empty()) out.emplace_back("localhost/");
  return out;
}

/// Adds slurm::kDecidedVariable: the names of variables that a step's tasks do not take from the
/// job, but from their container. Includes `outside`, except variables that the request sets.
void add_decided_variable(const Strings& outside, RunRequest& request) {
  std::set<std::string> names(outside.begin(), outside.end());
  for (const std::string& entry : request.environment) {
    bool taken_away = entry.find('=') == std::string::npos;
    if (taken_away) names.insert(entry);
    if (!taken_away) names.erase(std::string(variable_name(entry)));
  }
  Strings& forced = request.site.forced_environment;
  for (const std::string& entry : forced) names.insert(std::string(variable_name(entry)));
  if (names.empty()) return;
  forced.push_back(std::string(slurm::kDecidedVariable) + "=" +
                   join(Strings(names.begin(), names.end()), ","));
}

}  // namespace

Result<Strings> node_variables(const Context& context) {
  policy::Compiled compiled = TRY(read_policy(context));
  Strings out;
  for (std::string& name : compiled.policy.slurm.node_variables) {
    if (name != "default") {
      out.push_back(std::move(name));
      continue;
    }
    const Strings& usual = policy::variables_of_a_machine();
    out.insert(out.end(), usual.begin(), usual.end());
  }
  return out;
}

Result<RunRequest> apply_rules(const Context& context, RunRequest request,
                               const image::Image& image) {
  std::vector<policy::PlacedRule> rules = TRY(rules_of(context));
  if (!rules.empty()) {
    policy::Outcome outcome = TRY(judge_request(context, rules, request, &image));
    TRY(apply_effects(context, outcome.effects, image.config.config, outcome.verdicts, request));
    request.site.verdicts = std::move(outcome.verdicts);
  }
  if (request.labels.contains(kStepLabel)) {
    add_decided_variable(TRY(node_variables(context)), request);
  }
  return request;
}

Result<void> check_registry(const Context& context, const RunRequest& request,
                            const image::Image* image) {
  std::vector<policy::PlacedRule> rules = TRY(rules_of(context));
  // Of the rules without `registries`, only those matter that stop the evaluation of later rules. A
  // stop that depends on the image cannot be decided before the pull.
  std::erase_if(rules, [](const auto& placed) {
    const policy::Rule& rule = placed.rule;
    return rule.registries.empty() && (!rule.stop || policy::asks_image(rule));
  });
  if (std::ranges::all_of(rules,
                          [](const auto& placed) { return placed.rule.registries.empty(); })) {
    return {};
  }
  policy::Outcome outcome = TRY(judge_request(context, rules, request, image));
  return check_origin(outcome.effects.registries, request, image);
}

Result<void> check_origin(const std::vector<Given>& registries, const RunRequest& request,
                          const image::Image* image) {
  if (registries.empty() || !is_of_store(request)) return {};
  const Strings origins = TRY(origins_of(request, image));
  Strings allowed;
  for (const Given& given : registries) {
    for (const std::string& origin : origins) {
      if (policy::matches(given.text, origin)) return {};
    }
    allowed.push_back(given.text);
  }
  bool made_here = image != nullptr && image->sources.empty();
  return make_error(Kind::denied,
                    (made_here ? "the site does not allow images that were built or loaded here"
                               : "the site does not allow images from " + quote(origins.front())) +
                        " (rule " + quote(registries.front().rule) + ")",
                    (made_here ? "berth pull, from " : "") + ("one of " + join(allowed, ", ")));
}

Result<void> check_registry(const Context& context, const std::string& name,
                            const image::Image* image) {
  RunRequest request;
  request.image = name;
  return check_registry(context, request, image);
}

void add_site_hooks(const RunRequest& request, oci::Spec& spec) {
  for (const policy::SiteHook& hook : request.site.hooks) {
    oci::append_hook(hook.stage, {hook.path, hook.args, hook.env, hook.timeout}, spec.hooks);
  }
}

}  // namespace berth::engine
