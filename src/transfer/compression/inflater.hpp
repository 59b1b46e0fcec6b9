// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "oci/image_spec.hpp"

namespace berth::transfer {

/// Decompresses a layer: gzip with all its members by ISA-L, zstd with all its frames and a window
/// of at most 128 MiB, or plain data.
class Inflater {
 public:
  /// Returns the next bytes of the layer; empty at its end. Invalidates the previous bytes. The
  /// first call returns at least four bytes if the layer has as many.
  using Input = std::function<Result<std::string_view>()>;

  /// `threads`: the number of threads that inflate gzip, including the caller. More than one take
  /// up to 13 MiB of memory each, and 39 MiB for input and output.
  static std::unique_ptr<Inflater> make(oci::Compression compression, Input input,
                                        size_t threads = 1);
  /// The same for a layer in memory; `input` has to stay valid.
  static std::unique_ptr<Inflater> make(oci::Compression compression, std::string_view input);
  /// Chooses the compression by the first bytes, and uses `said` if they show none.
  /// containers/image writes manifests that call a blob gzip although it is zstd or plain in the
  /// registry, other tools call a gzip blob plain, and docker and podman unpack all of these. The
  /// diff id verifies the output.
  static std::unique_ptr<Inflater> recognize(oci::Compression said, Input input,
                                             size_t threads = 1);
  virtual ~Inflater() = default;

  /// Fills `out`; returns less only at the end of the stream.
  /// Errors: corrupt (damaged, cut short, something after the end), unsupported (a larger zstd
  /// window), those of the input.
  virtual Result<size_t> read(char* out, size_t size) = 0;

  /// The number of consumed input bytes.
  virtual uint64_t consumed() const = 0;
};

/// The error for `code`, a result of isal_inflate().
Error gzip_error(int code);

}  // namespace berth::transfer
