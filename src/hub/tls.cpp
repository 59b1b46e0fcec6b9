// SPDX-License-Identifier: Apache-2.0
#include "hub/tls.hpp"

#include <boost/asio/buffer.hpp>

#include "transfer/registry/shared_key.hpp"

namespace berth::hub {

using Tls = boost::asio::ssl::context;

Result<std::shared_ptr<Tls>> make_tls(const TlsOptions& options) {
  auto made = std::make_shared<Tls>(Tls::tls_server);
  Tls& tls = *made;
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(tls.native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(tls.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  if (!options.shared_key.empty()) {
    transfer::share_key_as_server(tls.native_handle(), options.shared_key);
    return made;
  }
  boost::system::error_code error;
  // There is no user to ask for a passphrase.
  tls.set_password_callback([](size_t, Tls::password_purpose) { return std::string(); }, error);
  tls.use_certificate_chain(boost::asio::buffer(options.certificate), error);
  if (error) {
    return make_error(Kind::usage, "read tls-certificate: " + error.message(),
                      "a PEM file with the certificate first");
  }
  tls.use_private_key(boost::asio::buffer(options.key), Tls::pem, error);
  if (error) {
    return make_error(Kind::usage, "read tls-key: " + error.message(),
                      "a PEM file without a password, of the certificate's own key");
  }
  return made;
}

}  // namespace berth::hub
