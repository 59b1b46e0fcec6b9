// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "doctor/finding.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Checks whether this machine can run containers and give them GPUs. Never fails: a file that
/// cannot be read is a finding. With Scope::everything the process of an ordinary user is in a user
/// namespace afterwards.
std::vector<doctor::Answer> examine(const Context& context, doctor::Scope scope);

}  // namespace berth::engine
