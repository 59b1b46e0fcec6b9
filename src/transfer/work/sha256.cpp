// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/sha256.hpp"

#include <openssl/evp.h>

#include <string>

namespace berth::transfer {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  reset();
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::reset() {
  // Fails only without memory or without OpenSSL's default provider, which a caller could not
  // handle.
  BERTH_ASSERT(EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::string_view bytes) {
  BERTH_ASSERT(EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
  std::string raw(32, '\0');
  BERTH_ASSERT(EVP_DigestFinal_ex(impl_->context, reinterpret_cast<unsigned char*>(raw.data()),
                                  nullptr) == 1);
  return Digest::from_sha256(raw);
}

Digest sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace berth::transfer
