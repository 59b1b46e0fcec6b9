// SPDX-License-Identifier: Apache-2.0
// Only for the server: exposes Asio.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/result.hpp"
#include "hub/server_options.hpp"

namespace berth::hub {

/// TLS 1.2 and later (1.3 with a shared key), without renegotiation and compression.
/// Errors: usage (an invalid certificate or key, or a mismatch of the two).
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls(const TlsOptions& options);

}  // namespace berth::hub
