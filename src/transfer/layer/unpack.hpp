// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "transfer/layer/unpack_options.hpp"

namespace berth::transfer {

class Inflater;
class LayerSink;

struct UnpackedLayer {
  Digest diff_id;  ///< SHA-256 of the whole uncompressed stream
  uint64_t entries = 0;
  uint64_t bytes = 0;  ///< of regular files
};

/// Unpacks the tar that `bytes` gives into what `sink` makes of it, which was made with the same
/// options, hashing it in the same pass; the sink is finished when this succeeds. A LayerWriter
/// makes directories: whiteouts become what overlay understands, character devices 0:0 and the
/// opaque mark, and every path is resolved below its root by handles; nothing of the layer can
/// reach outside it.
///
/// The bytes may be anybody's: before the result is published the caller has seen that the blob's
/// digest holds, and compared the returned diff_id; else he throws it away.
/// ownership full: owners exactly as recorded; in a user namespace, device nodes are left out with
/// one warning. single: owners, setuid bits of others and device nodes are left out.
/// Errors: corrupt (the entry and the reason), unsupported (a kind of entry or an id that cannot be
/// expressed here), denied, io (no space left), interrupted, and those of the bytes.
/// Source: image-spec layer.md; POSIX pax; kernel overlayfs.rst "whiteouts and opaque directories".
Result<UnpackedLayer> unpack_layer(std::unique_ptr<Inflater> bytes, LayerSink& sink,
                                   const UnpackOptions& options);

}  // namespace berth::transfer
