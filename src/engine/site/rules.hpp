// SPDX-License-Identifier: Apache-2.0
// The site's rules (policy/rules.hpp), laid under and over what was asked for. docs/policy.md
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"
#include "policy/rules.hpp"

namespace berth::engine {

/// `request` with what the site's rules give. Once for each container; before anything of it is
/// there.  Errors: denied (a rule refuses it), those of policy::read_compiled() and of what the
/// texts of rules mean on this machine, behind the name of the rule.
Result<RunRequest> apply_rules(const Context& context, RunRequest request,
                               const image::Image& image);

/// Whether the rules let the image of `request`, which is one of the store, be used: `image` by
/// what it was pulled as, and without it, before the pull, by its name. Others are not asked about:
/// they are not from a registry.  Errors: denied, and those of policy::read_compiled().
Result<void> check_registry(const Context& context, const RunRequest& request,
                            const image::Image* image);
/// The same for what becomes no container: a pull, or what an image is built on.
Result<void> check_registry(const Context& context, const std::string& name,
                            const image::Image* image);

/// The same for `registries` of rules that are known.
Result<void> check_places(const std::vector<policy::Given>& registries, const RunRequest& request,
                          const image::Image* image);

/// The policy's slurm.node-variables.  Errors: those of policy::read_compiled().
Result<std::vector<std::string>> node_variables(const Context& context);

/// Adds the hooks of rules after those that are there.
void add_site_hooks(const RunRequest& request, oci::Spec& spec);

}  // namespace berth::engine
