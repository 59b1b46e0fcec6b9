// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::engine {

enum class Repair { no, yes };

/// Checks everything in the store; Repair::yes removes what is damaged or not needed, except what a
/// container uses.  Errors: those of berth-transfer.
Result<image::CheckReport> check_store(const Context& context, Repair repair);

}  // namespace berth::engine
