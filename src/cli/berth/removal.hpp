// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/berth/verb.hpp"
#include "engine/container/life.hpp"

namespace berth::cli {

/// Ends and removes each of these containers, and prints its name; with `end.force` a missing one
/// is not an error. The status is that of for_each_argument(). Enters the user namespace after
/// ending them.
Result<int> remove_containers(Session& session, const std::vector<std::string>& containers,
                              engine::EndOptions end, engine::AnonymousVolumes volumes);

}  // namespace berth::cli
