// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "image/layer_work.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Makes files of unpacked layers that are the same one on the disk: by shared blocks where the
/// file system can, else files of one path, of different layers, by hard links, unless a container
/// uses the layer. What a container sees does not change but for the count of links.
/// docs/decisions/0149-identical-files-once.md says why so.
/// Others may pull, run and remove meanwhile; of several who do this one works, the others wait.
/// Errors: interrupted, io, usage and unsupported (the store).
Result<image::TransferResult> dedupe(const image::DedupeRequest& request, const EventSink& events,
                                     const Cancel& cancel);

}  // namespace berth::transfer
