// SPDX-License-Identifier: Apache-2.0
// What the site's rules (policy/rules.hpp) give. docs/policy.md
#pragma once

#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "policy/rules.hpp"

namespace berth::engine {

/// Lays what rules give into `request`; `verdicts` are told what became of it. Reads the machine
/// where a rule is for what it has.  Errors: denied (a rule refuses it), and those of what its
/// texts mean on this machine, behind the name of the rule.
Result<void> apply_effects(const Context& context, const policy::Effects& effects,
                           const oci::ContainerDefaults& image,
                           std::vector<policy::Verdict>& verdicts, RunRequest& request);

/// Whether limits keep to what the site lets a container have (SiteShare::most).  Errors: denied.
Result<void> check_most(const Limits& most, const Limits& limits);

/// What is wrong with the texts of a rule that flags have too: mounts, sizes, names of devices.
std::vector<policy::RuleFault> check_texts(const policy::Rule& rule);

}  // namespace berth::engine
