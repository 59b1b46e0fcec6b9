// SPDX-License-Identifier: Apache-2.0
// A few threads make answers. Each stream has a thread from a separate pool, which waits for the
// client.
#include "hub/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "hub/session.hpp"
#include "sys/net/tcp.hpp"
#include "transfer/registry/shared_key.hpp"

namespace berth::hub {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kAnswerThreads = 8;
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr size_t kMostRefused = 16;

/// A listening address; its handlers run on `control`.
struct Listener {
  explicit Listener(Shared& shared) : acceptor(shared.control), pause(shared.control) {}
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  bool waits = false;  ///< waits for a session to end before it accepts
};

Result<void> listen_at(Listener& listener, const Endpoint& where) {
  ErrorCode error;
  tcp::endpoint endpoint(asio::ip::make_address(where.host, error), where.port);
  auto& acceptor = listener.acceptor;
  if (!error) acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  return sys_error(error.value(), fmt::format("listen at '{}' port {}", where.host, where.port));
}

Result<void> take_over(Listener& listener, sys::Fd socket) {
  const bool six = TRY(sys::listening_address(socket)).starts_with('[');
  ErrorCode error;
  listener.acceptor.assign(six ? tcp::v6() : tcp::v4(), socket.get(), error);
  if (error) return sys_error(error.value(), "serve a socket that listens");
  socket.release();
  return {};
}

using Tls = asio::ssl::context;

/// TLS 1.2 and later (1.3 with a shared key), without renegotiation and compression.
/// Errors: usage (an invalid certificate or key, or a key of another certificate).
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
  ErrorCode error;
  // There is no user to ask for a passphrase.
  tls.set_password_callback([](size_t, Tls::password_purpose) { return std::string(); }, error);
  tls.use_certificate_chain(asio::buffer(options.certificate), error);
  if (error) {
    return make_error(Kind::usage, "read tls-certificate: " + error.message(),
                      "a PEM file with the certificate first");
  }
  tls.use_private_key(asio::buffer(options.key), Tls::pem, error);
  if (error) {
    return make_error(Kind::usage, "read tls-key: " + error.message(),
                      "a PEM file without a password, of the certificate's own key");
  }
  return made;
}

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, Handler handler, Observer observer)
      : shared_(std::move(options), std::move(handler), std::move(observer)),
        signals_(shared_.control, SIGTERM, SIGINT),
        hangups_(shared_.control, SIGHUP),
        grace_(shared_.control),
        guests_(shared_.options.connections_per_address, kMostRefused) {}

  Result<void> set_up(sys::Fd listener) {
    if (shared_.options.tls) shared_.tls = TRY(make_tls(*shared_.options.tls));
    for (const Endpoint& where : shared_.options.listen) {
      listeners_.push_back(std::make_unique<Listener>(shared_));
      TRY(listen_at(*listeners_.back(), where));
    }
    if (listener) {
      listeners_.push_back(std::make_unique<Listener>(shared_));
      TRY(take_over(*listeners_.back(), std::move(listener)));
    }
    return {};
  }

  std::vector<std::string> addresses() const override {
    std::vector<std::string> out;
    for (const auto& listener : listeners_) {
      ErrorCode ignored;
      tcp::endpoint where = listener->acceptor.local_endpoint(ignored);
      std::string host = where.address().to_string();
      bool six = where.address().is_v6();
      out.push_back(fmt::format("{}://{}{}{}:{}", shared_.tls ? "https" : "http", six ? "[" : "",
                                host, six ? "]" : "", where.port()));
    }
    return out;
  }

  Result<void> renew_tls(const TlsOptions& options) override {
    auto tls = TRY(make_tls(options));
    asio::post(shared_.control, [this, tls = std::move(tls)] { shared_.tls = tls; });
    return {};
  }

  Result<void> run(transfer::Cancel& cancel, const std::function<void()>& on_hangup) override {
    try {
      shared_.answers.emplace(kAnswerThreads);
      shared_.transfers.emplace(shared_.options.transfers);
    } catch (const std::exception&) {
      return make_error(Kind::busy, "start threads: the limit of processes is reached",
                        "a higher one (ulimit -u), or fewer limits.transfers");
    }
    shared_.answer_turns.emplace(share_of(kAnswerThreads), [this](Turns::Task task) {
      asio::post(*shared_.answers, std::move(task));
    });
    shared_.transfer_turns.emplace(share_of(shared_.options.transfers), [this](Turns::Task task) {
      asio::post(*shared_.transfers, std::move(task));
    });
    work_.emplace(shared_.io.get_executor());
    shared_.on_end = [this](const Address& address, Welcome welcome) {
      guests_.remove(address, welcome);
      session_ended();
    };
    for (auto& listener : listeners_) {
      asio::post(shared_.control, [this, &listener] { accept(*listener); });
    }
    await_signal(cancel);
    await_hangup(on_hangup);
    serve_in_threads();
    shared_.answers->join();
    shared_.transfers->join();
    return {};
  }

 private:
  /// How many of `threads` one address may use: the same fraction as of the connections.
  size_t share_of(size_t threads) const {
    const ServerOptions& options = shared_.options;
    size_t of_one = std::min(options.connections_per_address, options.connections);
    return std::max<size_t>(threads * of_one / options.connections, 1);
  }

  void serve_in_threads() {
    auto serve = [this] {
      while (true) {
        try {
          shared_.io.run();
          return;
        } catch (const std::exception&) {
          // A handler had no memory for its session: the other sessions continue.
        }
      }
    };
    std::vector<std::jthread> threads;
    size_t wanted = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4);
    try {
      while (threads.size() + 1 < wanted) threads.emplace_back(serve);
    } catch (const std::system_error&) {
      // One thread is enough.
    }
    serve();
  }

  void accept(Listener& listener) {
    listener.waits = false;
    listener.acceptor.async_accept(asio::make_strand(shared_.io),
                                   [this, &listener](ErrorCode error, tcp::socket socket) {
                                     if (shared_.ending) return;
                                     if (error) return accept_later(listener);
                                     greet(std::move(socket));
                                     if (guests_.served() >= shared_.options.connections) {
                                       listener.waits = true;
                                     } else {
                                       accept(listener);
                                     }
                                   });
  }

  // Called if accept() failed, for example because no descriptors are left: the queue waits longer.
  void accept_later(Listener& listener) {
    listener.pause.expires_after(kAcceptPause);
    listener.pause.async_wait([this, &listener](ErrorCode error) {
      if (!error && !shared_.ending) accept(listener);
    });
  }

  void greet(tcp::socket socket) {
    ErrorCode error;
    tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;  // the client has disconnected
    Welcome welcome = guests_.add(address_of(peer.address()));
    if (welcome == Welcome::closed) return;
    socket.set_option(tcp::no_delay(true), error);
    start_session(shared_, peer, welcome, std::move(socket));
  }

  void session_ended() {
    if (shared_.ending) {
      if (guests_.empty()) finish();
      return;
    }
    for (auto& listener : listeners_) {
      if (listener->waits) accept(*listener);
    }
  }

  void await_signal(transfer::Cancel& cancel) {
    signals_.async_wait([this, &cancel](ErrorCode error, int) {
      if (error) return;
      if (shared_.ending) return break_off(cancel);
      await_signal(cancel);  // a second signal skips the grace time
      end(cancel);
    });
  }

  void await_hangup(const std::function<void()>& on_hangup) {
    hangups_.async_wait([this, &on_hangup](ErrorCode error, int) {
      if (error || shared_.ending) return;
      asio::post(*shared_.answers, [this, &on_hangup] {
        on_hangup();
        asio::post(shared_.control, [this, &on_hangup] { await_hangup(on_hangup); });
      });
    });
  }

  void end(transfer::Cancel& cancel) {
    shared_.ending = true;
    for (auto& listener : listeners_) {
      ErrorCode ignored;
      listener->acceptor.close(ignored);
      listener->pause.cancel();
    }
    if (guests_.empty()) return finish();
    for_each_session([](Connection& session) { session.end_when_idle(); });
    grace_.expires_after(shared_.options.grace);
    grace_.async_wait([this, &cancel](ErrorCode error) {
      if (!error) break_off(cancel);
    });
  }

  void break_off(transfer::Cancel& cancel) {
    cancel.request();
    for_each_session([](Connection& session) { session.break_off(); });
  }

  void finish() {
    grace_.cancel();
    signals_.cancel();
    hangups_.cancel();
    work_.reset();
  }

  template <class Act>
  void for_each_session(Act act) {
    std::lock_guard lock(shared_.mutex);
    for (Connection* session : shared_.sessions) act(*session);
  }

  Shared shared_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  asio::signal_set signals_;
  asio::signal_set hangups_;
  asio::steady_timer grace_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  Guests guests_;  // used on `control` only
};

}  // namespace

Result<void> Server::check(const ServerOptions& options) {
  if (options.tls) TRY(make_tls(*options.tls));
  return {};
}

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options, Handler handler,
                                               Observer observer) {
  sys::Fd listener = std::move(options.listener);
  auto server =
      std::make_unique<AsioServer>(std::move(options), std::move(handler), std::move(observer));
  TRY(server->set_up(std::move(listener)));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace berth::hub
