// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "image/layer_work.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Stores identical files of unpacked layers once: by shared blocks (reflinks) where the file
/// system can; else files of one path, in different layers, by hard links, unless a container uses
/// the layer. Containers see no difference except the link count.
/// docs/decisions/0149-identical-files-once.md has the reasons. Others may pull, run and remove
/// meanwhile; of several deduplicating processes one works, the others wait.
/// Errors: interrupted, io, usage and unsupported (the store).
Result<image::TransferResult> dedupe(const image::DedupeRequest& request, const EventSink& events,
                                     const Cancel& cancel);

}  // namespace berth::transfer
