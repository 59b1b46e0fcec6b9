// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/shared_key.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>

namespace berth::transfer {
namespace {

using Tls = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Connection = std::unique_ptr<SSL, decltype(&SSL_free)>;

const std::string kKey(64, 'a');

Tls client(const std::string& key) {
  Tls tls(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  share_key_as_client(tls.get(), key);
  return tls;
}

Tls server(const std::string& key) {
  Tls tls(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  share_key_as_server(tls.get(), key);
  return tls;
}

/// Both ends in one process, until both have shaken hands or one gives up.
bool shake_hands(SSL_CTX* one, SSL_CTX* other) {
  Connection near(SSL_new(one), &SSL_free);
  Connection far(SSL_new(other), &SSL_free);
  BIO* near_end = nullptr;
  BIO* far_end = nullptr;
  BIO_new_bio_pair(&near_end, 0, &far_end, 0);
  SSL_set_bio(near.get(), near_end, near_end);
  SSL_set_bio(far.get(), far_end, far_end);
  SSL_set_connect_state(near.get());
  SSL_set_accept_state(far.get());
  auto waits = [](SSL* connection, int status) {
    return SSL_get_error(connection, status) == SSL_ERROR_WANT_READ;
  };
  for (int step = 0; step < 10; ++step) {
    int here = SSL_do_handshake(near.get());
    int there = SSL_do_handshake(far.get());
    if (here == 1 && there == 1) return SSL_version(near.get()) == TLS1_3_VERSION;
    if (here != 1 && !waits(near.get(), here)) return false;
    if (there != 1 && !waits(far.get(), there)) return false;
  }
  return false;
}

TEST(SharedKey, who_has_it_is_let_in) {
  EXPECT_TRUE(shake_hands(client(kKey).get(), server(kKey).get()));
}

TEST(SharedKey, who_has_another_one_is_not) {
  for (const std::string& other : {std::string(64, 'b'), kKey.substr(1), kKey + "a"}) {
    EXPECT_FALSE(shake_hands(client(other).get(), server(kKey).get()));
    EXPECT_FALSE(shake_hands(client(kKey).get(), server(other).get()));
  }
}

TEST(SharedKey, who_has_none_is_not) {
  Tls stranger(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  EXPECT_FALSE(shake_hands(stranger.get(), server(kKey).get()));
}

TEST(SharedKey, is_kept_by_the_context) {
  auto key = std::make_unique<std::string>(kKey);
  Tls tls = client(*key);
  key.reset();
  EXPECT_TRUE(shake_hands(tls.get(), server(kKey).get()));
}

}  // namespace
}  // namespace berth::transfer
