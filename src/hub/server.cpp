// SPDX-License-Identifier: Apache-2.0
// Reading is asynchronous: a slow client costs a buffer and a timer. Answers are made by a few
// threads; what comes in pieces has a thread of its own pool each, which waits for its client.
#include "hub/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/ssl.hpp>
#include <csignal>
#include <ctime>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/text.hpp"

namespace berth::hub {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ErrorCode = beast::error_code;
using Plain = beast::tcp_stream;
using Secure = beast::ssl_stream<beast::tcp_stream>;
using Control = asio::strand<asio::io_context::executor_type>;

constexpr size_t kPiece = size_t{64} << 10;
constexpr size_t kAnswerThreads = 8;
constexpr seconds kLongestQueue{60};
constexpr seconds kLinger{2};
constexpr size_t kLingerBytes = size_t{1} << 20;
constexpr std::chrono::milliseconds kAcceptPause{100};

Address address_of(const asio::ip::address& address) {
  asio::ip::address_v6 six = address.is_v4()
                                 ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4())
                                 : address.to_v6();
  Address out;
  auto bytes = six.to_bytes();
  std::copy(bytes.begin(), bytes.end(), out.bytes.begin());
  return out;
}

/// Source: RFC 9110 section 5.6.7
std::string http_date() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  size_t size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

bool is_clean(std::string_view value) {
  return std::none_of(value.begin(), value.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; });
}

std::string head_text(const Reply& reply, std::optional<uint64_t> length, bool closes) {
  auto phrase = http::obsolete_reason(http::int_to_status(reply.status));
  std::string_view reason(phrase.data(), phrase.size());
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, reason);
  auto add = [&text](std::string_view name, std::string_view value) {
    if (is_clean(value)) text += fmt::format("{}: {}\r\n", name, value);
  };
  add("Date", http_date());
  add("Server", "berth-hub");
  add("Docker-Distribution-Api-Version", "registry/2.0");
  add("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : reply.headers) add(name, value);
  if (length) add("Content-Length", std::to_string(*length));
  if (closes) add("Connection", "close");
  return text + "\r\n";
}

/// Large documents that clients are about to take, each counted once however many take it.
class Outgoing {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  explicit Outgoing(size_t most) : most_(most) {}

  bool add(const Bytes& bytes) {
    std::lock_guard lock(mutex_);
    size_t& takers = takers_[bytes.get()];
    if (takers == 0 && held_ + bytes->size() > most_) {
      takers_.erase(bytes.get());
      return false;
    }
    if (takers++ == 0) held_ += bytes->size();
    return true;
  }
  void remove(const Bytes& bytes) {
    std::lock_guard lock(mutex_);
    auto entry = takers_.find(bytes.get());
    if (--entry->second > 0) return;
    held_ -= bytes->size();
    takers_.erase(entry);
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  size_t held_ = 0;
  std::map<const std::string*, size_t> takers_;
};

class Connection;

/// What the sessions of a server share.
struct Shared {
  Shared(ServerOptions given, Server::Handler handle, Server::Observer observe)
      : options(std::move(given)),
        handler(std::move(handle)),
        observer(std::move(observe)),
        outgoing(options.document_bytes),
        control(asio::make_strand(io)) {}

  const ServerOptions options;
  const Server::Handler handler;
  const Server::Observer observer;
  Outgoing outgoing;
  asio::io_context io;
  Control control;
  std::optional<asio::ssl::context> tls;
  std::optional<asio::thread_pool> answers;
  std::optional<asio::thread_pool> transfers;
  std::atomic<bool> ending{false};
  std::function<void()> on_end;  ///< of a session; on `control`

  std::mutex mutex;
  std::set<Connection*> sessions;
};

/// What the server knows of a session.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void end_when_idle() = 0;
  virtual void break_off() = 0;
};

/// One connection: a request, its answer, the next one. Its handlers run on the stream's strand
/// unless it says otherwise.
template <class Stream>
class Session final : public Connection,
                      public Output,
                      public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <class... More>
  Session(Shared& shared, const tcp::endpoint& peer, tcp::socket socket, More&... more)
      : shared_(shared), stream_(std::move(socket), more...) {
    asked_.address = address_of(peer.address());
    asked_.address_text = peer.address().to_string();
    std::lock_guard lock(shared_.mutex);
    shared_.sessions.insert(this);
  }
  ~Session() override {
    {
      std::lock_guard lock(shared_.mutex);
      shared_.sessions.erase(this);
    }
    forget_body();
    asio::post(shared_.control, [&shared = shared_] { shared.on_end(); });
  }

  void start() {
    asio::post(stream_.get_executor(), [self = this->shared_from_this()] { self->shake_hands(); });
  }

  // Of Connection: any thread.
  void end_when_idle() override {
    asio::post(stream_.get_executor(), [weak = this->weak_from_this()] {
      auto self = weak.lock();
      if (self && self->idle_) self->socket().close();
    });
  }
  void break_off() override {
    asio::post(stream_.get_executor(), [weak = this->weak_from_this()] {
      if (auto self = weak.lock()) self->socket().close();
    });
  }

  // Of Output: a thread of shared_.transfers.
  bool begun() const override { return begun_; }
  Result<void> begin(const Reply& head) override {
    begun_ = true;
    ended_.status = head.status;
    length_ = head.length;
    if (!length_) closes_ = true;
    std::string text = head_text(head, length_, closes_);
    return put(asio::buffer(text));
  }
  Result<void> write(std::string_view bytes) override {
    if (length_ && bytes.size() > *length_ - ended_.bytes) {
      return make_error(Kind::corrupt, "pass a blob on: more bytes than its registry said");
    }
    while (!bytes.empty()) {
      std::string_view piece = bytes.substr(0, kPiece);
      TRY(put(asio::buffer(piece.data(), piece.size())));
      ended_.bytes += piece.size();
      bytes.remove_prefix(piece.size());
    }
    return {};
  }

 private:
  beast::tcp_stream& socket() { return beast::get_lowest_layer(stream_); }

  /// Writes on the strand while this thread waits.
  Result<void> put(asio::const_buffer bytes) {
    std::promise<ErrorCode> done;
    asio::post(stream_.get_executor(), [&] {
      socket().expires_after(shared_.options.write_time);
      asio::async_write(stream_, bytes,
                        [&done](ErrorCode error, size_t) { done.set_value(error); });
    });
    ErrorCode error = done.get_future().get();
    if (!error) return {};
    return make_error(Kind::io, "write to the client: " + error.message());
  }

  void shake_hands() {
    if constexpr (std::is_same_v<Stream, Secure>) {
      socket().expires_after(shared_.options.head_time);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](ErrorCode error) {
                                if (!error) self->read(self->shared_.options.head_time);
                              });
    } else {
      read(shared_.options.head_time);
    }
  }

  void read(seconds time) {
    if (shared_.ending) return close();
    idle_ = true;
    parser_.emplace();
    parser_->header_limit(kMaxHeadBytes);
    parser_->body_limit(std::numeric_limits<uint64_t>::max());  // none is refused by Boost 1.74
    socket().expires_after(time);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](ErrorCode error, size_t) {
                              self->idle_ = false;
                              self->started_ = steady_clock::now();
                              error ? self->read_failed(error) : self->take_request();
                            });
  }

  void read_failed(ErrorCode error) {
    bool ended = error == http::error::end_of_stream || error == http::error::partial_message;
    bool http_error =
        error.category() == http::make_error_code(http::error::bad_line_ending).category();
    if (ended || !http_error) return;  // it has gone, or took too long
    bool large = error == http::error::header_limit || error == http::error::buffer_overflow;
    clear_request();
    note_.error = error.message();
    closes_ = true;
    send(large ? refusal(431, "UNSUPPORTED", "the head of the request is larger than 16 KiB")
               : refusal(400, "UNSUPPORTED", "this is no HTTP/1.1 request"));
  }

  void clear_request() {
    Asked fresh;
    fresh.address = asked_.address;
    fresh.address_text = asked_.address_text;
    asked_ = std::move(fresh);
    note_ = {};
    ended_ = {};
    begun_ = false;
    length_.reset();
  }

  void take_request() {
    clear_request();
    auto text = [](beast::string_view view) { return std::string(view.data(), view.size()); };
    const auto& request = parser_->get();
    asked_.method = text(request.method_string());
    asked_.target = text(request.target());
    asked_.authorization = text(request[http::field::authorization]);
    asked_.range = text(request[http::field::range]);
    asked_.node = text(request["Berth-Node"]);
    auto accept = request.equal_range(http::field::accept);
    for (auto one = accept.first; one != accept.second; ++one) {
      asked_.accept.push_back(text(one->value()));
    }
    // A body is not read: what comes behind it could not be told from it.
    bool has_body = request.count(http::field::transfer_encoding) > 0 ||
                    parser_->content_length().value_or(0) > 0;
    closes_ = !request.keep_alive() || has_body;
    parser_.reset();
    asio::post(*shared_.answers, [self = this->shared_from_this()] { self->answer(); });
  }

  /// On a thread of shared_.answers.
  void answer() {
    try {
      Answer answer = shared_.handler(asked_);
      note_ = std::move(answer.note);
      if (!answer.stream) return send_later(std::move(answer.reply));
      asio::post(*shared_.transfers,
                 [self = this->shared_from_this(), stream = std::move(answer.stream)] {
                   self->stream_answer(stream);
                 });
    } catch (const std::exception& exception) {
      fail(exception);
    }
  }

  /// On a thread of shared_.transfers.
  template <class Streamer>
  void stream_answer(const Streamer& streamer) {
    if (steady_clock::now() - started_ > kLongestQueue) {
      return send_later(refusal(503, "TOOMANYREQUESTS", "too many blobs are on their way"));
    }
    try {
      Result<Reply> reply = streamer(*this, note_);
      if (!begun_) return send_later(reply.ok() ? std::move(*reply) : broken());
      bool whole = reply.ok() && (!length_ || *length_ == ended_.bytes);
      end_later(whole);
    } catch (const std::exception& exception) {
      fail(exception);
    }
  }

  static Reply broken() { return refusal(500, "UNKNOWN", "this hub has failed"); }

  void fail(const std::exception& exception) {
    note_.error = std::string("unexpected: ") + exception.what();
    closes_ = true;
    begun_ ? end_later(false) : send_later(broken());
  }

  void end_later(bool whole) {
    asio::post(stream_.get_executor(), [self = this->shared_from_this(), whole] {
      self->ended_.whole = whole;
      self->end_answer();
    });
  }

  void send_later(Reply reply) {
    asio::post(stream_.get_executor(),
               [self = this->shared_from_this(), reply = std::move(reply)]() mutable {
                 self->send(std::move(reply));
               });
  }

  void send(Reply reply) {
    const bool head = asked_.method == "HEAD";
    counted_ = !head && reply.body && reply.body->size() > kPiece;
    if (counted_ && !shared_.outgoing.add(reply.body)) {
      counted_ = false;
      reply =
          refusal(503, "TOOMANYREQUESTS", "too many clients are slow to take what they asked for");
    }
    ended_.status = reply.status;
    uint64_t size = reply.body ? reply.body->size() : 0;
    head_ = head_text(reply, reply.length.value_or(size), closes_);
    body_ = head ? nullptr : std::move(reply.body);
    write_next(asio::buffer(head_), [self = this->shared_from_this()] { self->send_body(0); });
  }

  void send_body(size_t from) {
    size_t size = body_ ? body_->size() : 0;
    ended_.bytes = from;
    if (from == size) return end_answer();
    size_t piece = std::min(kPiece, size - from);
    write_next(asio::buffer(body_->data() + from, piece),
               [self = this->shared_from_this(), to = from + piece] { self->send_body(to); });
  }

  template <class Next>
  void write_next(asio::const_buffer bytes, Next next) {
    socket().expires_after(shared_.options.write_time);
    asio::async_write(
        stream_, bytes,
        [self = this->shared_from_this(), next = std::move(next)](ErrorCode error, size_t) {
          if (!error) return next();
          self->ended_.whole = false;
          self->end_answer();
        });
  }

  void forget_body() {
    if (counted_) shared_.outgoing.remove(body_);
    counted_ = false;
    body_.reset();
  }

  void end_answer() {
    forget_body();
    ended_.time =
        std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - started_);
    shared_.observer(asked_, note_, ended_);
    if (!ended_.whole) return socket().close();
    if (closes_) return close();
    read(shared_.options.idle_time);
  }

  void close() {
    if constexpr (std::is_same_v<Stream, Secure>) {
      socket().expires_after(kLinger);
      stream_.async_shutdown([self = this->shared_from_this()](ErrorCode) { self->linger(); });
    } else {
      linger();
    }
  }

  // What a client still sends would otherwise reset the connection, and with it our last words.
  void linger() {
    ErrorCode ignored;
    socket().socket().shutdown(tcp::socket::shutdown_send, ignored);
    socket().expires_after(kLinger);
    rest_.resize(4096);
    drain(0);
  }
  void drain(size_t drained) {
    if (drained > kLingerBytes) return socket().close();
    socket().async_read_some(asio::buffer(rest_), [self = this->shared_from_this(), drained](
                                                      ErrorCode error, size_t size) {
      if (!error) self->drain(drained + size);
    });
  }

  Shared& shared_;
  Stream stream_;
  beast::flat_buffer buffer_{kMaxHeadBytes + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Asked asked_;
  Note note_;
  Ended ended_;
  std::string head_;
  std::shared_ptr<const std::string> body_;
  std::optional<uint64_t> length_;  // of a body in pieces
  std::string rest_;
  steady_clock::time_point started_;
  bool idle_ = false;
  bool begun_ = false;
  bool closes_ = false;
  bool counted_ = false;  // body_, in shared_.outgoing
};

Result<void> set_up_tls(Shared& shared) {
  using Tls = asio::ssl::context;
  shared.tls.emplace(Tls::tls_server);
  Tls& tls = *shared.tls;
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(tls.native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(tls.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  ErrorCode error;
  // Nobody is there to be asked for one.
  tls.set_password_callback([](size_t, Tls::password_purpose) { return std::string(); }, error);
  tls.use_certificate_chain(asio::buffer(shared.options.tls->certificate), error);
  if (error) {
    return make_error(Kind::usage, "read tls-certificate: " + error.message(),
                      "a PEM file with the certificate first");
  }
  tls.use_private_key(asio::buffer(shared.options.tls->key), Tls::pem, error);
  if (error) {
    return make_error(Kind::usage, "read tls-key: " + error.message(),
                      "a PEM file without a password, of the certificate's own key");
  }
  return {};
}

/// One address that is listened at; its handlers run on `control`.
struct Listener {
  explicit Listener(Shared& shared) : acceptor(shared.control), pause(shared.control) {}
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  bool waits = false;  ///< for a session to end
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

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, Handler handler, Observer observer)
      : shared_(std::move(options), std::move(handler), std::move(observer)),
        signals_(shared_.control, SIGTERM, SIGINT),
        grace_(shared_.control) {}

  Result<void> set_up() {
    if (shared_.options.tls) TRY(set_up_tls(shared_));
    for (const Endpoint& where : shared_.options.listen) {
      listeners_.push_back(std::make_unique<Listener>(shared_));
      TRY(listen_at(*listeners_.back(), where));
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

  Result<void> run(transfer::Cancel& cancel) override {
    try {
      shared_.answers.emplace(kAnswerThreads);
      shared_.transfers.emplace(shared_.options.transfers);
    } catch (const std::exception&) {
      return make_error(Kind::busy, "start threads: the limit of processes is reached",
                        "a higher one (ulimit -u), or fewer limits.transfers");
    }
    work_.emplace(shared_.io.get_executor());
    shared_.on_end = [this] { session_ended(); };
    for (auto& listener : listeners_) {
      asio::post(shared_.control, [this, &listener] { accept(*listener); });
    }
    await_signal(cancel);
    serve_in_threads();
    shared_.answers->join();
    shared_.transfers->join();
    return {};
  }

 private:
  void serve_in_threads() {
    auto serve = [this] {
      while (true) {
        try {
          shared_.io.run();
          return;
        } catch (const std::exception&) {
          // No memory for one of them: the others go on.
        }
      }
    };
    std::vector<std::jthread> threads;
    size_t wanted = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4);
    try {
      while (threads.size() + 1 < wanted) threads.emplace_back(serve);
    } catch (const std::system_error&) {
      // One is enough.
    }
    serve();
  }

  void accept(Listener& listener) {
    listener.waits = false;
    listener.acceptor.async_accept(asio::make_strand(shared_.io),
                                   [this, &listener](ErrorCode error, tcp::socket socket) {
                                     if (shared_.ending) return;
                                     if (error) return accept_later(listener);
                                     start_session(std::move(socket));
                                     if (open_ >= shared_.options.connections) {
                                       listener.waits = true;
                                     } else {
                                       accept(listener);
                                     }
                                   });
  }

  // No descriptors are left, or the like: what waits in the queue can wait longer.
  void accept_later(Listener& listener) {
    listener.pause.expires_after(kAcceptPause);
    listener.pause.async_wait([this, &listener](ErrorCode error) {
      if (!error && !shared_.ending) accept(listener);
    });
  }

  void start_session(tcp::socket socket) {
    ErrorCode error;
    tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;  // it has gone already
    socket.set_option(tcp::no_delay(true), error);
    ++open_;
    if (shared_.tls) {
      std::make_shared<Session<Secure>>(shared_, peer, std::move(socket), *shared_.tls)->start();
    } else {
      std::make_shared<Session<Plain>>(shared_, peer, std::move(socket))->start();
    }
  }

  void session_ended() {
    --open_;
    if (shared_.ending) {
      if (open_ == 0) finish();
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
      await_signal(cancel);  // a second one is for who has no time
      end(cancel);
    });
  }

  void end(transfer::Cancel& cancel) {
    shared_.ending = true;
    for (auto& listener : listeners_) {
      ErrorCode ignored;
      listener->acceptor.close(ignored);
      listener->pause.cancel();
    }
    if (open_ == 0) return finish();
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
  asio::steady_timer grace_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  size_t open_ = 0;  // on control
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options, Handler handler,
                                               Observer observer) {
  auto server =
      std::make_unique<AsioServer>(std::move(options), std::move(handler), std::move(observer));
  TRY(server->set_up());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace berth::hub
