// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "oci/image_spec.hpp"

namespace berth::transfer {

/// Unpacks a compressed layer that lies in memory: gzip with all its members by ISA-L, zstd with
/// all its frames and a window of at most 128 MiB, or nothing at all.
class Inflater {
 public:
  /// `input` must stay valid.
  static Result<std::unique_ptr<Inflater>> make(oci::Compression compression,
                                                std::string_view input);
  virtual ~Inflater() = default;

  /// Fills `out`; less only at the end of the stream.
  /// Errors: corrupt (damaged, cut short, something after the end), unsupported (the window).
  virtual Result<size_t> read(char* out, size_t size) = 0;

  /// How much of the input is used up.
  virtual uint64_t consumed() const = 0;
};

}  // namespace berth::transfer
