// SPDX-License-Identifier: Apache-2.0
// Applies the effects of the site's rules (policy/rules.hpp). docs/policy.md
#pragma once

#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "policy/rules.hpp"

namespace berth::engine {

/// Applies the effects of rules to `request`, and notes the results in `verdicts`. Probes the
/// machine if a rule depends on it.  Errors: denied (a rule refuses the request), and, prefixed
/// with the name of the rule, those of the values in the rule.
Result<void> apply_effects(const Context& context, const policy::Effects& effects,
                           const oci::ContainerDefaults& image,
                           std::vector<policy::Verdict>& verdicts, RunRequest& request);

/// Checks that `limits` do not exceed the site's maximum (SiteShare::most).  Errors: denied.
Result<void> check_most(const Limits& most, const Limits& limits);

/// The errors in the values of a rule that have the syntax of flags: mounts, sizes, device names.
std::vector<policy::RuleFault> check_texts(const policy::Rule& rule);

}  // namespace berth::engine
