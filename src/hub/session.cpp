// SPDX-License-Identifier: Apache-2.0
// Reading is asynchronous: a slow client costs a buffer and a timer.
#include "hub/session.hpp"

#include <algorithm>
#include <boost/asio/buffers_iterator.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/ssl.hpp>
#include <exception>
#include <future>
#include <limits>

#include "hub/reply.hpp"

namespace berth::hub {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ErrorCode = boost::system::error_code;
using Plain = beast::tcp_stream;
using Secure = beast::ssl_stream<beast::tcp_stream>;

constexpr size_t kSessionPiece = size_t{64} << 10;
constexpr seconds kLongestQueue{60};
constexpr seconds kLinger{2};
constexpr size_t kLingerBytes = size_t{1} << 20;

/// One connection: a request, its answer, the next one. Its handlers run on the stream's strand
/// unless noted otherwise.
template <class Stream>
class Session final : public Connection,
                      public Output,
                      public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <class... More>
  Session(Shared& shared, const tcp::endpoint& peer, Welcome welcome, tcp::socket socket,
          More&... more)
      : shared_(shared), welcome_(welcome), stream_(std::move(socket), more...) {
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
    asio::post(shared_.control, [&shared = shared_, address = asked_.address, welcome = welcome_] {
      shared.on_end(address, welcome);
    });
  }

  void start() {
    asio::post(stream_.get_executor(), [self = this->shared_from_this()] { self->shake_hands(); });
  }

  // From Connection; any thread may call it.
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

  // From Output; called on a thread of shared_.transfers.
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
      return make_error(Kind::corrupt, "pass a blob on: more bytes than its registry announced");
    }
    while (!bytes.empty()) {
      std::string_view piece = bytes.substr(0, kSessionPiece);
      TRY(put(asio::buffer(piece.data(), piece.size())));
      ended_.bytes += piece.size();
      bytes.remove_prefix(piece.size());
    }
    return {};
  }

 private:
  beast::tcp_stream& socket() { return beast::get_lowest_layer(stream_); }

  /// Writes on the strand; this thread waits until the bytes are written.
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
      socket().expires_after(first_time());
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](ErrorCode error) {
                                if (!error) self->read(self->first_time());
                              });
    } else {
      read(first_time());
    }
  }
  seconds first_time() const {
    bool served = welcome_ == Welcome::served;
    return served ? shared_.options.head_time : shared_.options.refusal_time;
  }

  void read(seconds time) {
    if (shared_.ending) return close();
    idle_ = true;
    parser_.emplace();
    parser_->header_limit(kMaxHeadBytes);
    parser_->body_limit(std::numeric_limits<uint64_t>::max());  // Boost 1.74 needs a limit
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
    if (ended || !http_error) return;  // the client has disconnected, or took too long
    bool large = error == http::error::header_limit || error == http::error::buffer_overflow;
    clear_request();
    note_.error = begins_tls()
                      ? "the client speaks TLS, and this hub has none: it may try again without"
                      : error.message();
    closes_ = true;
    send(large ? refusal(431, "UNSUPPORTED", "the head of the request is larger than 16 KiB")
               : refusal(400, "UNSUPPORTED", "this is not an HTTP/1.1 request"));
  }

  /// podman and docker try TLS first if they are configured for a registry that may lack TLS.
  bool begins_tls() const {
    constexpr char kHandshake = 22;  // RFC 8446, 5.1: ContentType
    auto bytes = asio::buffers_begin(buffer_.data());
    return !std::is_same_v<Stream, Secure> && buffer_.size() > 0 && *bytes == kHandshake;
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
    // A request body is not read, so the connection is closed: the next request could not be told
    // apart from the body.
    bool has_body = request.count(http::field::transfer_encoding) > 0 ||
                    parser_->content_length().value_or(0) > 0;
    closes_ = !request.keep_alive() || has_body;
    parser_.reset();
    if (welcome_ == Welcome::refused) return refuse();
    shared_.answer_turns->add(asked_.address,
                              [self = this->shared_from_this()] { self->answer(); });
  }

  void refuse() {
    Reply reply = refusal(429, "TOOMANYREQUESTS", "this address has too many connections");
    reply.headers.emplace_back("Retry-After", "5");
    note_.error = "more than limits.connections-per-address";
    closes_ = true;
    send(std::move(reply));
  }

  /// On a thread of shared_.answers.
  void answer() {
    try {
      Answer answer = shared_.handler(asked_);
      note_ = std::move(answer.note);
      if (!answer.stream) return send_later(std::move(answer.reply));
      shared_.transfer_turns->add(
          asked_.address, [self = this->shared_from_this(), stream = std::move(answer.stream)] {
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
    counted_ = !head && reply.body && reply.body->size() > kSessionPiece;
    if (counted_ && !shared_.outgoing.add(reply.body)) {
      counted_ = false;
      reply = refusal(503, "TOOMANYREQUESTS", "too many clients read their answers too slowly");
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
    size_t piece = std::min(kSessionPiece, size - from);
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

  // Reads what the client still sends: closing with unread data would reset the connection and
  // discard our last answer.
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
  const Welcome welcome_;
  Stream stream_;
  beast::flat_buffer buffer_{kMaxHeadBytes + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Asked asked_;
  Note note_;
  Ended ended_;
  std::string head_;
  std::shared_ptr<const std::string> body_;
  std::optional<uint64_t> length_;  // of a streamed body
  std::string rest_;
  steady_clock::time_point started_;
  bool idle_ = false;
  bool begun_ = false;
  bool closes_ = false;
  bool counted_ = false;  // shared_.outgoing has counted body_
};

}  // namespace

Address address_of(const asio::ip::address& address) {
  asio::ip::address_v6 six = address.is_v4()
                                 ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4())
                                 : address.to_v6();
  Address out;
  auto bytes = six.to_bytes();
  std::ranges::copy(bytes, out.bytes.begin());
  return out;
}

void start_session(Shared& shared, const tcp::endpoint& peer, Welcome welcome, tcp::socket socket) {
  if (shared.tls) {
    std::make_shared<Session<Secure>>(shared, peer, welcome, std::move(socket), *shared.tls)
        ->start();
  } else {
    std::make_shared<Session<Plain>>(shared, peer, welcome, std::move(socket))->start();
  }
}

}  // namespace berth::hub
