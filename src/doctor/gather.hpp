// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/facts.hpp"
#include "doctor/inputs.hpp"

namespace berth::doctor {

/// Looks at the machine. What cannot be read is a fact, never an error. With Scope::everything an
/// ordinary user's process is in a user namespace of its own afterwards: making one and mounting an
/// overlay in it are tried out last. Leaves nothing behind.
Facts gather(const Inputs& inputs);

}  // namespace berth::doctor
