// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/oci/verb.hpp"
#include "runtime/state/state.hpp"

namespace berth::cli::oci {

/// The ids of `store` in which `pattern`, an extended regular expression (regex(7)), is found.
/// Errors: usage (no such expression).
Result<std::vector<std::string>> matching_ids(const runtime::Store& store,
                                              const std::string& pattern);

/// Calls `act` for each of `ids`. One that fails does not keep the others from their turn: it is a
/// warning, and the exit status, which is what comes out, is 1.
Result<int> for_each_id(Session& session, const std::vector<std::string>& ids,
                        const std::function<Result<void>(const std::string& id)>& act);

}  // namespace berth::cli::oci
