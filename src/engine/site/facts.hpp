// SPDX-License-Identifier: Apache-2.0
// What the site's rules (policy/rules.hpp) decide by.
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

/// What `policy test` is told in the place of this caller and this node; empty: the real ones.
struct SupposedFacts {
  std::optional<std::string> user;  ///< name or number
  std::vector<std::string> groups;
  std::optional<std::string> partition;
  std::vector<std::string> features;
};

/// What `rules` decide about `request`; `image` is null where it is not here.
/// Errors: those of this_node(), sys::find_account() and sys::group_names().
Result<policy::Outcome> judge_request(const Context& context,
                                      const std::vector<policy::PlacedRule>& rules,
                                      const RunRequest& request, const image::Image* image,
                                      const SupposedFacts& supposed = {});

/// "K=V" of what the flags say.
std::vector<std::string> typed_variables(const RunRequest& request);

/// Whether the flags ask for GPUs, in one way or another.
bool asks_gpus(const RunRequest& request);

}  // namespace berth::engine
