// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/shared_key.hpp"

#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/result.hpp"

namespace berth::transfer {
namespace {

/// There is only one key, so its name does not matter.
constexpr std::string_view kIdentity = "berth";

void forget(void*, void* key, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<std::string*>(key);
}

/// The slot for the key in an SSL context.
int key_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, forget);
  return slot;
}

/// Returns the number of bytes of the key; 0 ends the handshake.
unsigned put_key(SSL* connection, unsigned char* out, unsigned room) {
  const SSL_CTX* tls = SSL_get_SSL_CTX(connection);
  const auto* key = static_cast<const std::string*>(SSL_CTX_get_ex_data(tls, key_slot()));
  if (key == nullptr || key->size() > room) return 0;
  std::ranges::copy(*key, out);
  return static_cast<unsigned>(key->size());
}

unsigned on_client(SSL* connection, const char*, char* identity, unsigned most, unsigned char* out,
                   unsigned room) {
  if (most <= kIdentity.size()) return 0;
  std::memcpy(identity, kIdentity.data(), kIdentity.size());
  identity[kIdentity.size()] = '\0';
  return put_key(connection, out, room);
}

unsigned on_server(SSL* connection, const char*, unsigned char* out, unsigned room) {
  return put_key(connection, out, room);
}

/// A peer with a certificate has not proved that it has the key.
int refuse_certificate(X509_STORE_CTX*, void*) {
  return 0;
}

void keep_key(SSL_CTX* tls, const std::string& key) {
  bool kept = SSL_CTX_set_ex_data(tls, key_slot(), new std::string(key)) == 1 &&
              SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&
              // An external key needs suites with one hash: SHA-256 with these callbacks.
              SSL_CTX_set_ciphersuites(tls, "TLS_AES_128_GCM_SHA256") == 1;
  BERTH_ASSERT(kept);
  SSL_CTX_set_options(tls, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
}

}  // namespace

void share_key_as_client(SSL_CTX* tls, const std::string& key) {
  keep_key(tls, key);
  SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(tls, &refuse_certificate, nullptr);
  SSL_CTX_set_psk_client_callback(tls, &on_client);
}

// The server has no certificate, so only the key makes a handshake possible.
void share_key_as_server(SSL_CTX* tls, const std::string& key) {
  keep_key(tls, key);
  SSL_CTX_set_num_tickets(tls, 0);
  SSL_CTX_set_psk_server_callback(tls, &on_server);
}

}  // namespace berth::transfer
