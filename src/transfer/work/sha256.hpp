// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "base/digest.hpp"

namespace berth::transfer {

/// A running SHA-256, computed by OpenSSL with the processor's SHA instructions. Call finish()
/// once, at the end.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  Digest finish();
  void reset();  ///< as new

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Digest sha256_of(std::string_view bytes);

}  // namespace berth::transfer
