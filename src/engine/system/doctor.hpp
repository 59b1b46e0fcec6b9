// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "doctor/finding.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Checks this machine for obstacles to containers and their GPUs. Never fails: what cannot be read
/// is a finding. With Scope::everything an ordinary user's process is in a user namespace
/// afterwards.
std::vector<doctor::Answer> examine(const Context& context, doctor::Scope scope);

}  // namespace berth::engine
