// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Pushes an image to the registry of its name: blobs that the registry lacks (or mounts from
/// another of its repositories), then the manifest, with the exact bytes with which it was pulled.
/// Errors: usage, not_found (no such image), denied, busy, io, interrupted; each begins "cannot
/// push '…'".
Result<image::TransferResult> push(const image::PushRequest& request, const EventSink& events,
                                   Cancel& cancel);

}  // namespace berth::transfer
