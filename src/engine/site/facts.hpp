// SPDX-License-Identifier: Apache-2.0
// The facts that the site's rules (policy/rules.hpp) depend on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "policy/rules.hpp"

namespace berth::engine {

/// Facts that `policy test` supposes instead of those of this caller and this node. Empty: the real
/// facts.
struct SupposedFacts {
  std::optional<std::string> user;  ///< name or number
  std::vector<std::string> groups;
  std::optional<std::string> partition;
  std::vector<std::string> features;
};

/// Evaluates `rules` for `request`; `image` is null if it is not in the store.
/// Errors: those of this_node(), sys::find_account() and sys::group_names().
Result<policy::Outcome> judge_request(const Context& context,
                                      const std::vector<policy::PlacedRule>& rules,
                                      const RunRequest& request, const image::Image* image,
                                      const SupposedFacts& supposed = {});

/// The variables that the flags set, as "K=V".
std::vector<std::string> typed_variables(const RunRequest& request);

/// Whether any flag requests GPUs.
bool asks_gpus(const RunRequest& request);

}  // namespace berth::engine
