// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/facts.hpp"
#include "doctor/inputs.hpp"

namespace berth::doctor {

/// Examines the machine. Unreadable things are facts, never errors. With Scope::everything an
/// ordinary user's process is in a user namespace of its own afterwards: the last tests make one
/// and mount an overlay in it. Leaves nothing behind.
Facts gather(const Inputs& inputs);

}  // namespace berth::doctor
