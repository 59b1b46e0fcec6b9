// SPDX-License-Identifier: Apache-2.0
// The site's policy, for the verbs of `berth policy`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/site/facts.hpp"
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
  /// Why policy.toml and policy.d are not what is in force: "it was changed since it was applied".
  std::optional<std::string> stale;
};

/// The policy that containers of this machine are started under.
/// Errors: those of policy::read_compiled().
Result<PolicyInForce> show_policy(const Context& context);

/// All that is wrong with these files; with the site's own policy.toml and policy.d without any.
/// Errors: not_found (nothing is there), and those of opening a file that was named.
Result<std::vector<Error>> check_policy(const Context& context,
                                        const std::vector<std::string>& files);

/// Compiles the site's policy.toml and policy.d/*.toml, by name, to policy.json beside them, which
/// is replaced at once or not at all. Gives its path.
/// Errors: not_found, usage (a fault, with its line), denied (a file that others can write).
Result<std::string> apply_policy(const Context& context);

/// Which program a configuration file belongs to.
enum class PolicyForm {
  any,      ///< told by its text
  toolkit,  ///< NVIDIA's config.toml
  houdini,  ///< houdini.ini
};

/// The policy.toml, or the file of policy.d, that does what `file` does.
/// Errors: corrupt, and those of opening it.
Result<std::string> import_policy(const std::string& file, PolicyForm form);

/// A container that is thought of, for `berth policy test`.
struct PolicyTrial {
  std::string image;
  std::vector<std::string> command;
  SupposedFacts supposed;
  std::optional<std::string> gpus;       ///< of --gpus
  std::vector<std::string> environment;  ///< of --env
};

struct PolicyAnswer {
  policy::Outcome outcome;
  bool image_known = false;      ///< it is here: its labels and variables were looked at
  std::optional<Error> refusal;  ///< why it would not be made
};

/// What the rules in force make of it. Nothing is started or pulled.
/// Errors: those of policy::read_compiled() and judge_request().
Result<PolicyAnswer> try_policy(const Context& context, const PolicyTrial& trial);

}  // namespace berth::engine
