// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "facts/layer_scan.hpp"
#include "image/transfer_protocol.hpp"
#include "sys/file/piece_writer.hpp"

namespace berth::transfer {

class Cancel;

/// The limits for a hostile layer. The bytes of files are counted before they are written.
/// BERTH_UNPACK_LIMITS raises or lowers them.
struct UnpackLimits {
  uint64_t entries = 10'000'000;
  uint64_t bytes = uint64_t{1} << 40;  ///< of the uncompressed tar
  /// Uncompressed bytes per compressed byte, checked beyond the first kRatioFrom bytes. Deflate
  /// cannot exceed 1032.
  uint64_t ratio = 1000;
  size_t path_length = 4095;
  uint64_t path_depth = 512;  ///< each directory holds a descriptor while it is in use
  uint64_t tree_bytes = uint64_t{2} << 30;  ///< of memory, for names that are kept until the end

  /// The limits with the changes that `text` names:
  /// "entries=20m,bytes=4t,ratio=5000,depth=2000,memory=8g", in any order.  Errors: usage.
  Result<UnpackLimits> changed_by(std::string_view text) const;
};
/// The ratio is not checked below this size: a test image may be one file of zeros.
inline constexpr uint64_t kRatioFrom = uint64_t{4} << 30;
/// The hint for an image that is refused for its size.
inline constexpr const char* kRaiseHint = "BERTH_UNPACK_LIMITS, if this image may be so large";

struct UnpackOptions {
  image::Ownership ownership = image::Ownership::full;
  image::OverlayXattr overlay_xattr = image::OverlayXattr::trusted;
  UnpackLimits limits;
  const Cancel* cancel = nullptr;
  sys::PieceWriter::Cache cache = sys::PieceWriter::Cache::through;  ///< for large files
  uint64_t blob_size = 0;            ///< of the compressed layer; 0: unknown
  facts::LayerScan* scan = nullptr;  ///< receives every ELF file as soon as it is written
  std::function<void(uint64_t compressed_bytes)> on_progress;  ///< called for every block read
  std::function<void(const std::string&)> on_warning;  ///< "…, ignoring" or "…, using … instead"
};

}  // namespace berth::transfer
