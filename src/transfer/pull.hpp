// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Resolves a reference: the entries of its index, flat, or its only image. Stores nothing.
/// Errors: as pull(), each begins "cannot look up '…'".
Result<image::TransferResult> resolve(const image::ResolveRequest& request, const EventSink& events,
                                      Cancel& cancel);

/// Brings an image into the store: index, manifest of the platform, config, layers, record, in this
/// order, so that a record never names missing objects. A failure leaves the store as before; an
/// interruption leaves verified layers for the next try.
/// Errors: usage (the reference, the platform), not_found, denied, busy, unsupported, corrupt, io,
/// interrupted; each begins "cannot pull '…'".
Result<image::TransferResult> pull(const image::PullRequest& request, const EventSink& events,
                                   Cancel& cancel);

}  // namespace berth::transfer
