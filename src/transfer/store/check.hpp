// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {

/// Checks everything in the store, reading all of it. Others may pull, run and remove meanwhile:
/// what they remove during the check is no damage.
/// Errors: interrupted, io, usage and unsupported (the store).
Result<image::TransferResult> check_store(const image::CheckRequest& request, const Cancel& cancel);

}  // namespace berth::transfer
