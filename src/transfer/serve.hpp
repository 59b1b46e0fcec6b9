// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Carries out a request; sends events to `events` meanwhile, and returns the result or the error.
/// Errors: those of the verb.
Result<image::TransferResult> serve(const image::TransferRequest& request, const EventSink& events,
                                    Cancel& cancel);

}  // namespace berth::transfer
