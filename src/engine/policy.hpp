// SPDX-License-Identifier: Apache-2.0
// The site's policy, for the verbs of `berth policy`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "policy/policy.hpp"

namespace berth::engine {

/// One key of the policy in force.
struct PolicyKey {
  std::string key;    ///< "gpu.environment"
  std::string value;  ///< as JSON
  std::string from;   ///< "/etc/berth/policy.toml:3", "default"
};

struct PolicyInForce {
  policy::Compiled compiled;
  std::vector<PolicyKey> keys;
  /// Why policy.toml is not what is in force: "not applied", "changed since it was applied".
  std::optional<std::string> stale;
};

/// The policy that containers of this machine are started under.
/// Errors: those of policy::read_compiled().
Result<PolicyInForce> show_policy(const Context& context);

/// All that is wrong with a policy.toml; the site's own without `file`.
/// Errors: not_found, corrupt (no TOML), and those of opening it.
Result<std::vector<Error>> check_policy(const Context& context,
                                        const std::optional<std::string>& file);

/// Compiles the site's policy.toml to policy.json beside it, which is replaced at once or not at
/// all. Gives its path.
/// Errors: not_found, usage (a fault, with its line), denied.
Result<std::string> apply_policy(const Context& context);

/// The policy.toml that does what the toolkit's `file` does.
Result<std::string> import_policy(const std::string& file);

}  // namespace berth::engine
