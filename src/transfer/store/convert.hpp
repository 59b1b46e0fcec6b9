// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "image/layer_work.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Converts the layers of images to the other form, within the store: each is compared with its
/// record, read as a tar, unpacked in the new form, and replaces the old one atomically.
/// docs/decisions/0150-layers-change-their-form.md
/// Errors: not_found (an image), busy (a container uses a layer; nothing was changed, unless it
/// started meanwhile), corrupt (a layer differs from its record), interrupted, io.
Result<image::TransferResult> convert(const image::ConvertRequest& request, const EventSink& events,
                                      Cancel& cancel);

}  // namespace berth::transfer
