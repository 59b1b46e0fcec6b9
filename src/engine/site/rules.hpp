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

/// `request` with the effects of the site's rules. Call once for each container, before any part of
/// it is created.  Errors: denied (a rule refuses the request), those of policy::read_compiled()
/// and, prefixed with the name of the rule, those of the values in a rule.
Result<RunRequest> apply_rules(const Context& context, RunRequest request,
                               const image::Image& image);

/// Checks that the rules permit the image of `request`: by the origin of `image` if that is given;
/// otherwise, before the pull, by the name in the request. Image files and directories are not
/// checked, since they come from no registry.  Errors: denied, and those of
/// policy::read_compiled().
Result<void> check_registry(const Context& context, const RunRequest& request,
                            const image::Image* image);
/// The same for an image that is pulled, or used as a base image, without a container.
Result<void> check_registry(const Context& context, const std::string& name,
                            const image::Image* image);

/// The same with `registries`, those that the applicable rules permit.
Result<void> check_origin(const std::vector<policy::Given>& registries, const RunRequest& request,
                          const image::Image* image);

/// The variables that the policy's slurm.node-variables names: a job does not pass them to its
/// tasks in a container. Errors: those of policy::read_compiled().
Result<std::vector<std::string>> node_variables(const Context& context);

/// Appends the hooks of the rules to the existing hooks.
void add_site_hooks(const RunRequest& request, oci::Spec& spec);

}  // namespace berth::engine
