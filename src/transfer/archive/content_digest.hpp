// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {

/// Digests of build inputs: from two directories with the same digest a builder makes the same
/// image.
/// Errors: usage (the ignore file), not_found, denied, unsupported (over 1,000,000 entries or 400
/// directories deep), io, interrupted; each names its directory.
Result<image::TransferResult> digest(const image::DigestRequest& request, Cancel& cancel);

}  // namespace berth::transfer
