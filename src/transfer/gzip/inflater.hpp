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

/// Unpacks a compressed layer: gzip with all its members by ISA-L, zstd with
/// all its frames and a window of at most 128 MiB, or nothing at all.
class Inflater {
 public:
  /// Gives the next bytes of the layer; none at its end. What it gave before may become invalid
  /// then. The first bytes are at least four, if there are as many.
  using Input = std::function<Result<std::string_view>()>;

  /// `threads`: how many inflate gzip; 1 is this one. More take the memory that
  /// ParallelGzip::Options::memory() says.
  static std::unique_ptr<Inflater> make(oci::Compression compression, Input input,
                                        size_t threads = 1);
  /// The same of a layer that lies in memory and stays there.
  static std::unique_ptr<Inflater> make(oci::Compression compression, std::string_view input);
  /// As the first bytes say, else as `said`: containers/image writes manifests that call a blob
  /// gzip which it knows to lie in the registry as zstd or plain, others call gzip plain, and
  /// docker and podman unpack those. Which bytes come out is checked by the diff id.
  static std::unique_ptr<Inflater> recognize(oci::Compression said, Input input,
                                             size_t threads = 1);
  virtual ~Inflater() = default;

  /// Fills `out`; less only at the end of the stream.
  /// Errors: corrupt (damaged, cut short, something after the end), unsupported (the window), those
  /// of the input.
  virtual Result<size_t> read(char* out, size_t size) = 0;

  /// How much of the input is used up.
  virtual uint64_t consumed() const = 0;
};

/// Why ISA-L does not go on with a gzip stream: `code` is what isal_inflate() gave.
Error gzip_error(int code);

}  // namespace berth::transfer
