// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Serves "GET /metrics" by HTTP on a UNIX socket at `path`, only for this user, one request at a
/// time, until SIGINT, SIGTERM or SIGHUP; then completes a running answer and removes the socket.
/// Disconnects a client that sends nothing, or reads nothing, for five seconds. Replaces a socket
/// without a listener. Errors: io (EADDRINUSE: another process listens there), exists (not a
/// socket), usage (the path is too long). Source: RFC 9112.
Result<void> serve_metrics(const Context& context, const std::string& path);

}  // namespace berth::engine
