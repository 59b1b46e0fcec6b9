// SPDX-License-Identifier: Apache-2.0
// Images to registries: one, or several with an index of them.
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Pushes an image to the registry of its name: blobs that the registry lacks (mounted from another
/// of its repositories if possible), then the manifest, with the same bytes as when it was pulled.
/// Errors: usage, not_found (no such image), denied, busy, io, interrupted; each begins "cannot
/// push '…'".
Result<image::TransferResult> push(const image::PushRequest& request, const EventSink& events,
                                   Cancel& cancel);

/// With a key, signs each entry and the index. Pushes the objects of several images that a
/// repository lacks (mounted from another repository if possible), then an index of the images.
/// Clients of the tag see either the old index or the complete new one. Errors: usage (no tag, no
/// entry, two entries of one digest), not_found (no such image), denied, busy, io, interrupted;
/// each begins "cannot publish '…'".
Result<image::TransferResult> publish(const image::PublishRequest& request, const EventSink& events,
                                      Cancel& cancel);

}  // namespace berth::transfer
