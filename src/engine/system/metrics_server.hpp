// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Answers "GET /metrics" by HTTP on a UNIX socket at `path`, for this user alone, one request at a
/// time, until SIGINT, SIGTERM or SIGHUP, which waits for an answer that has begun; the socket is
/// gone then. A client that sends nothing, or reads nothing, for five seconds is disconnected. A
/// socket that nobody answers at is replaced. Errors: io (EADDRINUSE: somebody answers there),
/// exists (no socket), usage (a path that is too long). Source: RFC 9112.
Result<void> serve_metrics(const Context& context, const std::string& path);

}  // namespace berth::engine
