// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/berth/verb.hpp"
#include "engine/container/life.hpp"

namespace berth::cli {

/// Ends and removes each of these containers, and prints its name. With `end.force` a missing
/// container is not an error. Enters the user namespace after the containers have ended. The status
/// is that of for_each_argument().
Result<int> remove_containers(Session& session, const std::vector<std::string>& containers,
                              engine::EndOptions end, engine::AnonymousVolumes volumes);

}  // namespace berth::cli
