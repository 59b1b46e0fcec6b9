// SPDX-License-Identifier: Apache-2.0
// Of the server alone: Asio shows.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/result.hpp"
#include "hub/server_options.hpp"

namespace berth::hub {

/// TLS 1.2 and later (of a shared key 1.3), without renegotiation and compression.
/// Errors: usage (a certificate or a key that is none, or not each other's).
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls(const TlsOptions& options);

}  // namespace berth::hub
