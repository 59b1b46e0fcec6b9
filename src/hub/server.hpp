// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 with or without TLS, on Beast and Asio, which this header hides. Connections, the size
// of headers, the time for a client, and threads are limited.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "hub/server_options.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::hub {

class Server {
 public:
  /// Checks the certificate and the key, without listening. Errors: usage, as listen().
  static Result<void> check(const ServerOptions& options);

  /// Binds and listens. Several threads call both functions of `handler` at once.
  /// Errors: usage (an invalid certificate or key, or a key of another certificate), exists (the
  /// address is in use), denied, io.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options, Handler handler,
                                                Observer observer);
  virtual ~Server() = default;

  /// The addresses that the server listens on, with the actual ports.
  virtual std::vector<std::string> addresses() const = 0;

  /// Replaces the certificate and its key for later connections. Thread-safe.
  /// Errors: those of listen().
  virtual Result<void> renew_tls(const TlsOptions& tls) = 0;

  /// Serves until SIGTERM or SIGINT, then waits options.grace for running answers, then requests
  /// `cancel` and closes their connections. On SIGHUP calls `on_hangup` on a separate thread, but
  /// not before an earlier call has returned. Errors: busy (no threads).
  virtual Result<void> run(transfer::Cancel& cancel, const std::function<void()>& on_hangup) = 0;
};

}  // namespace berth::hub
