// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Pushes what a repository lacks of several images (or has it mounted from another one), then an
/// index of them: clients of the tag see the old index or the new one, complete.
/// Errors: usage (no tag, no entry, two entries of one digest), not_found (no such image), denied,
/// busy, io, interrupted; each begins "cannot publish '…'".
Result<image::TransferResult> publish(const image::PublishRequest& request, const EventSink& events,
                                      Cancel& cancel);

}  // namespace berth::transfer
