// SPDX-License-Identifier: Apache-2.0
// Images to registries: one, or several with an index of them.
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

/// Pushes what a repository lacks of several images (or has it mounted from another one), then an
/// index of them: clients of the tag see the old index or the new one, complete.
/// Errors: usage (no tag, no entry, two entries of one digest), not_found (no such image), denied,
/// busy, io, interrupted; each begins "cannot publish '…'".
Result<image::TransferResult> publish(const image::PublishRequest& request, const EventSink& events,
                                      Cancel& cancel);

}  // namespace berth::transfer
