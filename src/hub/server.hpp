// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 with or without TLS, on Beast and Asio, which do not show here.
// Bounded: connections, what a head may be, how long a client may take, threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "hub/config/address.hpp"
#include "hub/reply.hpp"
#include "sys/fd.hpp"
#include "transfer/cancel.hpp"

namespace berth::hub {

inline constexpr size_t kMaxHeadBytes = size_t{16} << 10;

/// By what both ends of TLS know each other.
struct TlsOptions {
  std::string certificate = {};  ///< PEM text, then those above it
  std::string key = {};          ///< PEM text
  std::string shared_key = {};   ///< in the place of both (transfer/shared_key.hpp)
};

struct ServerOptions {
  std::vector<Endpoint> listen;
  sys::Fd listener;  ///< one more, which listens already; may be empty
  std::optional<TlsOptions> tls;
  size_t connections = 512;                  ///< more wait until one ends
  size_t connections_per_address = 512;      ///< more are refused
  size_t transfers = 64;                     ///< answers that come in pieces, at a time
  size_t document_bytes = size_t{64} << 20;  ///< of documents that clients are about to take
  std::chrono::seconds head_time{15};        ///< for a request's head, and for TLS's first words
  std::chrono::seconds idle_time{60};        ///< between requests
  std::chrono::seconds refusal_time{5};      ///< in the place of head_time, of who is refused
  std::chrono::seconds write_time{30};       ///< for each 64 KiB that a client takes
  std::chrono::seconds grace{5};             ///< for answers on their way, when it is to end
};

/// How a request ended.
struct Ended {
  unsigned status = 0;
  uint64_t bytes = 0;  ///< of the body
  std::chrono::microseconds time{0};
  bool whole = true;  ///< the client took all of it
};

class Server {
 public:
  using Handler = std::function<Answer(const Asked&)>;
  using Observer = std::function<void(const Asked&, const Note&, const Ended&)>;

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
