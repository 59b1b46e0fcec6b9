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
  /// Set if policy.toml and policy.d differ from the policy in force; says why: "it was changed
  /// since it was applied".
  std::optional<std::string> stale;
};

/// The policy in force for containers on this machine.
/// Errors: those of policy::read_compiled().
Result<PolicyInForce> show_policy(const Context& context);

/// All errors in these files; without `files`, in the site's own policy.toml and policy.d.
/// Errors: not_found (no files), and those of opening a named file.
Result<std::vector<Error>> check_policy(const Context& context,
                                        const std::vector<std::string>& files);

/// Compiles the site's policy.toml and policy.d/*.toml, sorted by name, to policy.json in the same
/// directory, which is replaced atomically. Returns the path of policy.json. Errors: not_found,
/// usage (a fault, with its line), denied (other users can write a file).
Result<std::string> apply_policy(const Context& context);

/// The program that a configuration file belongs to.
enum class PolicyForm {
  any,      ///< detected from the content of the file
  toolkit,  ///< NVIDIA's config.toml
  houdini,  ///< houdini.ini
};

/// A policy.toml, or a file for policy.d, with the same effect as `file`.
/// Errors: corrupt, and those of opening the file.
Result<std::string> import_policy(const std::string& file, PolicyForm form);

/// A hypothetical container for `berth policy test`.
struct PolicyTrial {
  std::string image;
  std::vector<std::string> command;
  SupposedFacts supposed;
  std::optional<std::string> gpus;       ///< the value of --gpus
  std::vector<std::string> environment;  ///< the entries of --env
};

struct PolicyAnswer {
  policy::Outcome outcome;
  bool image_known = false;      ///< the image is in the store; its labels and variables were used
  std::optional<Error> refusal;  ///< why the container would not be created
};

/// The decisions of the rules in force for `trial`. Starts and pulls nothing.
/// Errors: those of policy::read_compiled() and judge_request().
Result<PolicyAnswer> try_policy(const Context& context, const PolicyTrial& trial);

}  // namespace berth::engine
