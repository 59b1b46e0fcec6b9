// SPDX-License-Identifier: Apache-2.0
// TLS between two programs that share a secret and have no certificates.
#pragma once

#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace berth::transfer {

/// From now on both ends prove in the handshake that they have `key` (at most 256 bytes; the
/// context keeps a copy), and no third party can read or change the data: TLS 1.3 with an external
/// pre-shared key and a fresh key exchange. A peer with another key, with no key, or with a
/// certificate instead of a key gets no connection.
/// Source: RFC 8446 section 2.2; SSL_CTX_set_psk_client_callback(3),
/// SSL_CTX_set_psk_server_callback(3)
void share_key_as_client(ssl_ctx_st* tls, const std::string& key);
void share_key_as_server(ssl_ctx_st* tls, const std::string& key);

}  // namespace berth::transfer
