// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "facts/layer_scan.hpp"
#include "image/transfer_protocol.hpp"
#include "sys/piece_writer.hpp"

namespace berth::transfer {

class Cancel;
class Inflater;
class LayerSink;

/// What a hostile layer may cost at most. The bytes of files are counted before they are written.
/// BERTH_UNPACK_LIMITS raises or lowers them.
struct UnpackLimits {
  uint64_t entries = 10'000'000;
  uint64_t bytes = uint64_t{1} << 40;  ///< of the uncompressed tar
  /// Uncompressed to compressed, looked at beyond the first kRatioFrom bytes. Deflate cannot exceed
  /// 1032.
  uint64_t ratio = 1000;
  size_t path_length = 4095;
  uint64_t path_depth = 512;                ///< each holds a descriptor while it is in use
  uint64_t tree_bytes = uint64_t{2} << 30;  ///< of memory, where names stay there until the end

  /// "entries=20m,bytes=4t,ratio=5000,depth=2000,memory=8g": these with what `text` says, in any
  /// order.  Errors: usage.
  Result<UnpackLimits> changed_by(std::string_view text) const;
};
/// A test image may well be one file of zeros; a ratio says something only about much data.
inline constexpr uint64_t kRatioFrom = uint64_t{4} << 30;
/// What to try who means an image that is refused for its size.
inline constexpr const char* kRaiseHint = "BERTH_UNPACK_LIMITS, if this image may be so large";

struct UnpackOptions {
  image::Ownership ownership = image::Ownership::full;
  image::OverlayXattr overlay_xattr = image::OverlayXattr::trusted;
  UnpackLimits limits;
  const Cancel* cancel = nullptr;
  sys::PieceWriter::Cache cache = sys::PieceWriter::Cache::through;  ///< for large files
  uint64_t blob_size = 0;            ///< of the compressed layer; 0: unknown
  facts::LayerScan* scan = nullptr;  ///< told of every ELF file as soon as it is written
  std::function<void(uint64_t compressed_bytes)> on_progress;  ///< called for every block read
  std::function<void(const std::string&)> on_warning;  ///< "…, ignoring" or "…, using … instead"
};

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
