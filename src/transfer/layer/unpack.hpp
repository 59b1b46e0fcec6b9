// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "transfer/layer/unpack_options.hpp"

namespace berth::transfer {

class Inflater;
class MemberSink;

struct UnpackedLayer {
  Digest diff_id;  ///< SHA-256 of the whole uncompressed stream
  uint64_t entries = 0;
  uint64_t bytes = 0;  ///< of regular files
};

/// Unpacks the tar that `bytes` decompresses (Inflater::recognize() chooses the format) into
/// `sink`, which was made with the same options, and hashes the tar in the same pass. Finishes the
/// sink on success. With a LayerWriter, whiteouts become those of overlay (character devices 0:0
/// and the opaque mark), and every path is resolved by handles below the root of the layer, so that
/// no member can reach outside it.
///
/// The bytes may be hostile: before publishing, the caller verifies the blob's digest and compares
/// the returned diff_id; otherwise it discards the result. ownership full: owners exactly as
/// recorded; in a user namespace, device nodes are left out with one warning. single: owners,
/// setuid bits of others and device nodes are left out.
/// Errors: corrupt (the entry and the reason), unsupported (a kind of entry or an id that cannot be
/// expressed here), denied, io (no space left), interrupted, and those of `bytes`.
/// Source: image-spec layer.md; POSIX pax; kernel overlayfs.rst "whiteouts and opaque directories".
Result<UnpackedLayer> unpack_layer(std::unique_ptr<Inflater> bytes, MemberSink& sink,
                                   const UnpackOptions& options);

}  // namespace berth::transfer
