// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 with or without TLS, on Beast and Asio, which do not show here.
// Bounded: connections, what a head may be, how long a client may take, threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "hub/server_options.hpp"
#include "transfer/cancel.hpp"

namespace berth::hub {

class Server {
 public:
  /// Errors: those of listen() that no address is to blame for.
  static Result<void> check(const ServerOptions& options);

  /// Binds and listens. Both functions are called by several threads at once.
  /// Errors: usage (a certificate or a key that is none, or not each other's), exists (the address
  /// is taken), denied, io.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options, Handler handler,
                                                Observer observer);
  virtual ~Server() = default;

  /// Where it listens, with the ports that were free.
  virtual std::vector<std::string> addresses() const = 0;

  /// Another certificate with its key, for connections to come. Any thread.
  /// Errors: those of listen().
  virtual Result<void> renew_tls(const TlsOptions& tls) = 0;

  /// Calls `on_hangup`, on a thread of its own, for SIGHUP, and does not call it again before it
  /// has come back. Serves until SIGTERM or SIGINT, then lets answers end for options.grace, after
  /// which `cancel` is requested and they are broken off. Errors: busy (no threads).
  virtual Result<void> run(transfer::Cancel& cancel, const std::function<void()>& on_hangup) = 0;
};

}  // namespace berth::hub
