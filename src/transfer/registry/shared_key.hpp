// SPDX-License-Identifier: Apache-2.0
// TLS between two programs that have a secret in common and no certificates.
#pragma once

#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace berth::transfer {

/// From now on both ends prove in the handshake that they have `key` (at most 256 bytes, of which
/// the context keeps a copy), and nobody else can read or change what goes between them: TLS 1.3
/// with an external pre-shared key and a fresh key exchange. Who has another key, none, or a
/// certificate in its place, gets no connection.
/// Source: RFC 8446 section 2.2; SSL_CTX_set_psk_client_callback(3),
/// SSL_CTX_set_psk_server_callback(3)
void share_key_as_client(ssl_ctx_st* tls, const std::string& key);
void share_key_as_server(ssl_ctx_st* tls, const std::string& key);

}  // namespace berth::transfer
