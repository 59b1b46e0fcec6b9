// SPDX-License-Identifier: Apache-2.0
// Applies the site's rules (policy/rules.hpp) to a request. docs/policy.md
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

/// `request` with the effects of the site's rules. Call once for each container, before anything of
/// it is created.  Errors: denied (a rule refuses it), those of policy::read_compiled() and of the
/// rules' texts on this machine, after the name of the rule.
Result<RunRequest> apply_rules(const Context& context, RunRequest request,
                               const image::Image& image);

/// Checks that the rules permit the use of the image of `request`: with `image` by its origin, and
/// without it, before the pull, by its name. Images that are not in the store are not checked,
/// since they come from no registry.  Errors: denied, and those of policy::read_compiled().
Result<void> check_registry(const Context& context, const RunRequest& request,
                            const image::Image* image);
/// The same for an image without a container: a pull, or a base image.
Result<void> check_registry(const Context& context, const std::string& name,
                            const image::Image* image);

/// The same for known `registries` of rules.
Result<void> check_origin(const std::vector<policy::Given>& registries, const RunRequest& request,
                          const image::Image* image);

/// The policy's slurm.node-variables.  Errors: those of policy::read_compiled().
Result<std::vector<std::string>> node_variables(const Context& context);

/// Adds the hooks of rules after existing ones.
void add_site_hooks(const RunRequest& request, oci::Spec& spec);

}  // namespace berth::engine
