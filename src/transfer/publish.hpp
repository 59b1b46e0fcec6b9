// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Sends what a repository lacks of several images (or has it mounted from another one), then an
/// index over them: whoever asks for the tag sees the old index or the new one, whole.
/// Errors: usage (no tag, no entry, two entries of one digest), not_found (no such image), denied,
/// busy, io, interrupted; each begins "cannot publish '…'".
Result<image::TransferResult> publish(const image::PublishRequest& request, const EventSink& events,
                                      Cancel& cancel);

}  // namespace berth::transfer
