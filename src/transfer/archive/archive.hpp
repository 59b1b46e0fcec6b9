// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

class Cancel;

/// Reads the images of an OCI layout (directory or tar) or a docker-archive (tar) into the store;
/// the outer tar may be packed with gzip, bzip2, xz or zstd. Loads all images; if several have one
/// name, the one that fits the platform.
/// Errors: usage, not_found, corrupt, unsupported, io; the store is then as it was.
Result<image::TransferResult> load(const image::LoadRequest& request, const EventSink& events,
                                   Cancel& cancel);

/// Writes images for docker load, podman load and skopeo: one tar that is an OCI layout and a
/// docker-archive at once ("archive"), or an OCI layout directory ("oci"), which must not exist
/// yet.
/// Errors: usage, not_found, exists, io.
Result<image::TransferResult> save(const image::SaveRequest& request, const EventSink& events,
                                   Cancel& cancel);

/// Makes an image with one layer from a directory, a tar, or an image file of another engine.
/// Errors: usage (a change that is not a Dockerfile instruction for the config), not_found,
/// corrupt, io.
Result<image::TransferResult> import_image(const image::ImportRequest& request,
                                           const EventSink& events, Cancel& cancel);

/// Writes a tree of a container, or of the host, as a tar.
/// Errors: usage (too deep), unsupported (an entry that a tar cannot hold), io.
Result<image::TransferResult> archive(const image::ArchiveRequest& request, const EventSink& events,
                                      Cancel& cancel);

/// Extracts a tar into a tree of a container, or of the host.
/// Errors: usage (a directory in the place of a file, or the other way around), corrupt, io.
Result<image::TransferResult> extract(const image::ExtractRequest& request, const EventSink& events,
                                      Cancel& cancel);

/// Makes an image: the image of a container, and the container's own layer on top.
/// Errors: usage (an invalid change or name), not_found (the image), io.
Result<image::TransferResult> commit(const image::CommitRequest& request, const EventSink& events,
                                     Cancel& cancel);

/// Digests of build inputs: from two directories with the same digest a builder makes the same
/// image.
/// Errors: usage (an invalid ignore file), not_found, denied, unsupported (over 1,000,000 entries
/// or 400 directories deep), io, interrupted; each error names the directory.
Result<image::TransferResult> digest(const image::DigestRequest& request, Cancel& cancel);

}  // namespace berth::transfer
