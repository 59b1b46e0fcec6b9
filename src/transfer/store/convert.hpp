// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "image/layer_work.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Makes of the layers of images the other form, from what lies in the store: each is compared with
/// its record, read as a tar, unpacked as one, and takes the old one's place in one step.
/// docs/decisions/0150-layers-change-their-form.md
/// Errors: not_found (an image), busy (a container uses a layer; nothing was done then, unless it
/// came meanwhile), corrupt (a layer is not what its record says), interrupted, io.
Result<image::TransferResult> convert(const image::ConvertRequest& request, const EventSink& events,
                                      Cancel& cancel);

}  // namespace berth::transfer
