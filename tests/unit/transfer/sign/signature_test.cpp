// SPDX-License-Identifier: Apache-2.0
#include "transfer/sign/signature.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

namespace berth::transfer {
namespace {

using testing::HasSubstr;

struct Pair {
  std::string private_pem, public_pem;
};

std::string text_of(BIO* memory) {
  char* bytes = nullptr;
  long size = BIO_get_mem_data(memory, &bytes);
  std::string text(bytes, static_cast<size_t>(size));
  BIO_free(memory);
  return text;
}

/// Takes the key.
Pair pair_of(EVP_PKEY* key) {
  BIO* secret = BIO_new(BIO_s_mem());
  BIO* open = BIO_new(BIO_s_mem());
  EXPECT_EQ(PEM_write_bio_PrivateKey(secret, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
  EXPECT_EQ(PEM_write_bio_PUBKEY(open, key), 1);
  EVP_PKEY_free(key);
  return {text_of(secret), text_of(open)};
}

const Pair& p256() {
  static const Pair kPair = pair_of(EVP_EC_gen("P-256"));
  return kPair;
}
const Pair& ed25519() {
  static const Pair kPair = pair_of(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  return kPair;
}

TEST(Signature, is_known_by_the_public_half_of_its_key) {
  for (auto [key, other] : {std::pair(&p256(), &ed25519()), std::pair(&ed25519(), &p256())}) {
    auto signature = sign(key->private_pem, "what was found");
    ASSERT_TRUE(signature.ok()) << to_line(signature.error());
    EXPECT_TRUE(*verify(key->public_pem, "what was found", *signature));
    EXPECT_FALSE(*verify(key->public_pem, "something else", *signature));
    EXPECT_FALSE(*verify(other->public_pem, "what was found", *signature));
    EXPECT_FALSE(*verify(key->public_pem, "what was found", ""));
    EXPECT_FALSE(*verify(key->public_pem, "what was found", std::string(300, 'x')));
  }
}

TEST(Signature, has_the_same_name_for_both_halves_of_a_key) {
  EXPECT_EQ(*key_name(p256().private_pem), *key_name(p256().public_pem));
  EXPECT_NE(*key_name(p256().public_pem), *key_name(ed25519().public_pem));
}

TEST(Signature, is_known_by_the_public_key_that_the_private_one_gives) {
  for (const Pair* key : {&p256(), &ed25519()}) {
    auto made = public_key_of(key->private_pem);
    ASSERT_TRUE(made.ok()) << to_line(made.error());
    EXPECT_EQ(*made, key->public_pem);
  }
  EXPECT_FALSE(public_key_of(p256().public_pem).ok());
}

TEST(Signature, takes_no_other_kind_of_key) {
  for (const std::string& pem :
       {std::string(), std::string("no key"), pair_of(EVP_EC_gen("P-384")).private_pem,
        p256().public_pem, std::string(1 << 20, 'x')}) {
    auto signature = sign(pem, "bytes");
    ASSERT_FALSE(signature.ok());
    EXPECT_EQ(signature.error().kind, Kind::usage);
    EXPECT_THAT(signature.error().what, HasSubstr("not an unencrypted PEM of a P-256 or Ed25519"));
  }
  EXPECT_FALSE(verify(p256().private_pem, "bytes", "signature").ok());
}

}  // namespace
}  // namespace berth::transfer
