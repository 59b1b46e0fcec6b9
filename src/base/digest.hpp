// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth {

/// A content digest, validated once, so that its parts may become file names. Only sha256 with 64
/// lower-case hex digits is accepted: it is the one algorithm that registries must support
/// (image-spec descriptor.md "Digests").
class Digest {
 public:
  Digest() = default;

  /// Errors: corrupt (not of this form or another algorithm).
  static Result<Digest> parse(std::string_view text);

  /// From the 32 raw bytes of a SHA-256.
  static Digest from_sha256(std::string_view bytes);

  const std::string& hex() const { return hex_; }        ///< 64 digits
  std::string text() const { return "sha256:" + hex_; }  ///< "sha256:…"
  std::string short_hex() const { return hex_.substr(0, 12); }
  bool empty() const { return hex_.empty(); }
  auto operator<=>(const Digest&) const = default;

 private:
  std::string hex_;
};

}  // namespace berth
