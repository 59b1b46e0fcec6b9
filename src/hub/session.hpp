// SPDX-License-Identifier: Apache-2.0
// One connection: a request, its answer, the next one. Only for the server: exposes Asio.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "hub/client_limits.hpp"
#include "hub/server_options.hpp"

namespace berth::hub {

/// What the server knows about a session.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void end_when_idle() = 0;
  virtual void break_off() = 0;
};

using Control = boost::asio::strand<boost::asio::io_context::executor_type>;

/// The state that sessions of a server share.
struct Shared {
  Shared(ServerOptions given, Handler handle, Observer observe)
      : options(std::move(given)),
        handler(std::move(handle)),
        observer(std::move(observe)),
        outgoing(options.document_bytes),
        control(boost::asio::make_strand(io)) {}

  const ServerOptions options;
  const Handler handler;
  const Observer observer;
  Outgoing outgoing;
  boost::asio::io_context io;
  Control control;
  std::shared_ptr<boost::asio::ssl::context> tls;  ///< null: none
  std::optional<boost::asio::thread_pool> answers;
  std::optional<boost::asio::thread_pool> transfers;
  std::optional<Turns> answer_turns;    ///< for the pool `answers`
  std::optional<Turns> transfer_turns;  ///< for the pool `transfers`
  std::atomic<bool> ending{false};
  std::function<void(const Address&, Welcome)> on_end;  ///< called at a session's end, on `control`

  std::mutex mutex;
  std::set<Connection*> sessions;
};

Address address_of(const boost::asio::ip::address& address);

/// Serves a client until either side ends; then calls `shared.on_end`. `welcome` is not `closed`.
void start_session(Shared& shared, const boost::asio::ip::tcp::endpoint& peer, Welcome welcome,
                   boost::asio::ip::tcp::socket socket);

}  // namespace berth::hub
