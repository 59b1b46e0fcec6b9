// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 with or without TLS, on Beast and Asio, which this header hides. Bounded: connections,
// the size of headers, a client's time, threads.
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
  /// Errors: those of listen() that do not depend on an address.
  static Result<void> check(const ServerOptions& options);

  /// Binds and listens. Both functions are called by several threads at once.
  /// Errors: usage (an invalid certificate or key, or a mismatch of the two), exists (the address
  /// is in use), denied, io.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options, Handler handler,
                                                Observer observer);
  virtual ~Server() = default;

  /// The listening addresses, with the ports that were chosen.
  virtual std::vector<std::string> addresses() const = 0;

  /// Sets another certificate with its key, for later connections. Thread-safe.
  /// Errors: those of listen().
  virtual Result<void> renew_tls(const TlsOptions& tls) = 0;

  /// Calls `on_hangup`, on a thread of its own, for SIGHUP, but not again before it has returned.
  /// Serves until SIGTERM or SIGINT, then waits options.grace for running answers; after that
  /// requests `cancel` and closes them. Errors: busy (no threads).
  virtual Result<void> run(transfer::Cancel& cancel, const std::function<void()>& on_hangup) = 0;
};

}  // namespace berth::hub
