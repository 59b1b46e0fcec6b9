// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/oci/verb.hpp"
#include "runtime/state/state.hpp"

namespace berth::cli::oci {

/// The ids of `store` that match `pattern`, an extended regular expression (regex(7)).
/// Errors: usage (an invalid expression).
Result<std::vector<std::string>> matching_ids(const runtime::Store& store,
                                              const std::string& pattern);

/// Calls `act` for each of `ids`. A failure does not stop the others: it is a warning, and the
/// returned exit status is 1.
Result<int> for_each_id(Session& session, const std::vector<std::string>& ids,
                        const std::function<Result<void>(const std::string& id)>& act);

}  // namespace berth::cli::oci
