// SPDX-License-Identifier: Apache-2.0
// Requests about everything in a store, and about its unpacked layers.
#pragma once

#include "base/result.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Checks everything in the store, reading all of it. Other processes may pull, run and remove
/// images meanwhile; objects that they remove during the check do not count as damage.
/// Errors: interrupted, io, usage and unsupported (the store).
Result<image::TransferResult> check_store(const image::CheckRequest& request, const Cancel& cancel);

/// Stores identical files of unpacked layers once: by shared blocks (reflinks) if the file system
/// supports them; else by hard links between files with the same path in different layers, unless a
/// container uses the layer. Containers see no difference except the link count.
/// docs/decisions/0149-identical-files-once.md has the reasons. Other processes may pull, run and
/// remove images meanwhile. If several processes deduplicate, one works and the others wait.
/// Errors: interrupted, io, usage and unsupported (the store).
Result<image::TransferResult> dedupe(const image::DedupeRequest& request, const EventSink& events,
                                     const Cancel& cancel);

/// Converts the layers of images to the other form, within the store: each is compared with its
/// record, read as a tar, unpacked in the new form, and replaces the old one atomically.
/// docs/decisions/0150-layers-change-their-form.md
/// Errors: not_found (an image), busy (a container uses a layer; nothing was changed, unless it
/// started meanwhile), corrupt (a layer differs from its record), interrupted, io.
Result<image::TransferResult> convert(const image::ConvertRequest& request, const EventSink& events,
                                      Cancel& cancel);

}  // namespace berth::transfer
