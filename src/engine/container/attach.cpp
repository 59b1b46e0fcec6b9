// SPDX-License-Identifier: Apache-2.0
#include "engine/container/attach.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "engine/container/relay.hpp"
#include "engine/request/detach_keys.hpp"
#include "monitor/protocol.hpp"
#include "sys/fd/poll.hpp"
#include "sys/net/packet.hpp"
#include "sys/process/pty.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

using monitor::FromClient;
using monitor::FromMonitor;

constexpr size_t kTyped = size_t{16} << 10;
/// The bytes that a pipe accepts without blocking once poll() reports it writable. pipe(7)
constexpr size_t kAtOnce = 4096;

/// The number in a packet of the monitor; 0 for a packet of another size.
template <class Number>
Number number_in(std::string_view body) {
  Number number = 0;
  if (body.size() == sizeof number) std::memcpy(&number, body.data(), sizeof number);
  return number;
}

std::string_view byte_of(const char& kind) {
  return {&kind, 1};
}

std::optional<sys::WindowSize> our_size() {
  for (int number : {STDOUT_FILENO, STDIN_FILENO}) {
    if (!sys::is_terminal(number)) continue;
    sys::Fd terminal(number);
    auto size = sys::window_size(terminal);
    terminal.release();
    if (size.ok()) return *size;
  }
  return std::nullopt;
}

Result<bool> send(const sys::Fd& socket, FromClient kind, std::string_view body) {
  char name = static_cast<char>(kind);
  return sys::offer_packet(socket, byte_of(name), body);
}

void send_size(const sys::Fd& socket) {
  auto size = our_size();
  if (!size) return;
  std::array<uint16_t, 2> numbers = {size->rows, size->columns};
  // If the new size is lost, no harm is done.
  ignore(send(socket, FromClient::resize,
              {reinterpret_cast<const char*>(numbers.data()), sizeof numbers}));
}

/// One of our output streams, and the bytes that it has not accepted yet.
class OurOutput {
 public:
  static Result<OurOutput> open(int number, bool wanted) {
    OurOutput output;
    output.name_ = number == STDOUT_FILENO ? "standard output" : "standard error";
    if (wanted && sys::is_inherited(number)) output.fd_ = TRY(open_stream(number));
    return output;
  }
  bool is_empty() const { return begin_ == pending_.size(); }
  /// The reader of the stream has gone away.
  bool is_broken() const { return broken_; }
  const std::optional<Error>& error() const { return error_; }
  pollfd wanted() const { return {is_empty() ? -1 : fd_.get(), POLLOUT, 0}; }

  void add(std::string_view bytes) {
    if (!fd_) return;
    pending_.erase(0, begin_);
    begin_ = 0;
    pending_.append(bytes);
    flush();
  }
  void flush() {
    while (!is_empty()) {
      std::string_view rest = std::string_view(pending_).substr(begin_, kAtOnce);
      std::vector<pollfd> entries = {{fd_.get(), POLLOUT, 0}};
      auto ready = sys::poll(entries, std::chrono::milliseconds(0));
      if (!ready.ok() || *ready == 0) return;
      auto count = sys::write_some(fd_, rest, name_);
      if (!count.ok() && count.error().kind == Kind::busy) return;
      if (!count.ok()) return fail(std::move(count).error());
      begin_ += *count;
    }
    pending_.clear();
    begin_ = 0;
  }

 private:
  void fail(Error error) {
    if (error.sys_errno != EPIPE) error_ = std::move(error);
    broken_ = true;
    fd_.reset();
    pending_.clear();
    begin_ = 0;
  }

  sys::Fd fd_;
  std::string name_;
  std::string pending_;
  size_t begin_ = 0;
  std::optional<Error> error_;
  bool broken_ = false;
};

class Client {
 public:
  Client(sys::Fd socket, AttachOptions options, Log& log)
      : socket_(std::move(socket)),
        options_(std::move(options)),
        keys_(options_.detach_keys),
        log_(log) {}

  Result<void> open();
  Result<Attached> stay();

 private:
  void hear_signals();
  void read_input();
  void send_input();
  void receive();
  bool has_room() const { return out_.is_empty() && err_.is_empty(); }
  bool is_done() const {
    return done_ || (ended_ && has_room()) ||
           // No reader is left for the output, and there is no input.
           (options_.must_see_all && out_.is_broken() && err_.is_broken() && !options_.input);
  }

  sys::Fd socket_;
  AttachOptions options_;
  DetachKeys keys_;
  Log& log_;
  std::optional<Error> refusal_;  // from the monitor
  sys::RawMode raw_;
  sys::Fd signals_;
  sys::Fd in_;
  OurOutput out_;
  OurOutput err_;
  std::string typed_;         ///< not sent yet
  bool input_ended_ = false;  ///< our input ended; reported once typed_ is sent
  bool detaching_ = false;
  bool ended_ = false;  ///< the monitor sends nothing more
  bool done_ = false;
  Attached outcome_;
  known_error::Tail printed_;
};

Result<void> Client::open() {
  // PIPE: the loss of a reader must not end this process before the container.
  std::vector<int> numbers = {SIGWINCH, SIGPIPE};
  if (options_.signal_proxy) {
    std::vector<int> forwarded = sys::forwardable_signals();
    numbers.insert(numbers.end(), forwarded.begin(), forwarded.end());
  }
  signals_ = TRY(sys::receive_signals(numbers));
  out_ = TRY(OurOutput::open(STDOUT_FILENO, options_.output));
  err_ = TRY(OurOutput::open(STDERR_FILENO, options_.errors));
  if (options_.input) {
    if (sys::is_inherited(STDIN_FILENO)) in_ = TRY(open_stream(STDIN_FILENO));
    if (!in_) input_ended_ = true;
    if (options_.terminal && sys::is_terminal(STDIN_FILENO)) {
      raw_ = TRY(sys::RawMode::enter(STDIN_FILENO));
    }
  }
  if (options_.terminal) send_size(socket_);
  return {};
}

void Client::hear_signals() {
  while (true) {
    auto received = sys::read_signal(signals_);
    if (!received.ok() || !*received) return;
    int number = (*received)->number;
    if (number == SIGWINCH) {
      if (options_.terminal) send_size(socket_);
    } else if (number != SIGPIPE) {
      outcome_.asked = outcome_.asked || asks_for_end(number);
      char byte = static_cast<char>(number);
      ignore(send(socket_, FromClient::signal, byte_of(byte)));  // the monitor may have ended
    }
  }
}

void Client::read_input() {
  std::array<char, kTyped> buffer;
  auto count = sys::read_some(in_, buffer, "standard input");
  if (!count.ok() && count.error().kind == Kind::busy) return;
  if (!count.ok() || *count == 0) {
    in_.reset();
    input_ended_ = true;
    return;
  }
  // Only a terminal has detach keys: every byte from a pipe is data.
  bool person = options_.terminal && sys::is_terminal(STDIN_FILENO);
  std::string_view bytes(buffer.data(), *count);
  if (!person) {
    typed_.append(bytes);
    return;
  }
  DetachKeys::Typed typed = keys_.feed(bytes);
  typed_ += typed.bytes;
  detaching_ = typed.detach;
}

void Client::send_input() {
  while (!typed_.empty()) {
    std::string_view part = std::string_view(typed_).substr(0, kTyped);
    auto sent = send(socket_, FromClient::input, part);
    if (!sent.ok()) {
      typed_.clear();
      break;
    }
    if (!*sent) return;
    typed_.erase(0, part.size());
  }
  if (detaching_) {
    outcome_.detached = true;
    done_ = true;
  }
  if (!input_ended_) return;
  auto told = send(socket_, FromClient::input_end, "");
  if (!told.ok() || *told) input_ended_ = false;
}

void Client::receive() {
  std::array<char, monitor::kMaxData + 1> buffer;
  auto packet = sys::take_packet(socket_, buffer);
  if (packet.ok() && !*packet) return;
  if (!packet.ok() || (*packet)->size == 0) {
    outcome_.lost = !outcome_.status;
    ended_ = true;
    return;
  }
  std::string_view body(buffer.data() + 1, (*packet)->size - 1);
  switch (static_cast<FromMonitor>(buffer[0])) {
    case FromMonitor::output:
      printed_.add(body);
      return out_.add(body);
    case FromMonitor::errors:
      printed_.add(body);
      return err_.add(body);
    case FromMonitor::skipped: {
      log_.warn("this terminal was too slow: " + std::to_string(number_in<uint64_t>(body)) +
                " bytes of output are only in the container's log, ignoring");
      return;
    }
    case FromMonitor::full: {
      refusal_ = make_error(
          Kind::busy, std::to_string(number_in<uint32_t>(body)) + " clients are attached already",
          "'berth logs -f', or detach one of them");
      ended_ = true;
      return;
    }
    case FromMonitor::exit: {
      auto code = number_in<int32_t>(body);
      if (code >= 0) outcome_.status = code;
      ended_ = true;
      return;
    }
  }
}

Result<Attached> Client::stay() {
  while (!is_done()) {
    bool blocked = !typed_.empty() || input_ended_ || detaching_;
    // While our own streams are blocked, do not read from the monitor, which keeps the rest.
    short events = static_cast<short>((has_room() ? POLLIN : 0) | (blocked ? POLLOUT : 0));
    std::vector<pollfd> entries = {{signals_.get(), POLLIN, 0},
                                   {ended_ ? -1 : socket_.get(), events, 0},
                                   {typed_.empty() && !ended_ ? in_.get() : -1, POLLIN, 0},
                                   out_.wanted(),
                                   err_.wanted()};
    TRY(sys::poll(entries, std::nullopt));
    if (entries[0].revents != 0) hear_signals();
    if (entries[3].revents != 0) out_.flush();
    if (entries[4].revents != 0) err_.flush();
    if (entries[2].revents != 0) read_input();
    if (!ended_ && (!typed_.empty() || input_ended_ || detaching_)) send_input();
    if (!ended_ && has_room() && (entries[1].revents & (POLLIN | POLLHUP | POLLERR))) receive();
  }
  if (refusal_) return std::move(*refusal_);
  for (const OurOutput* output : {&out_, &err_}) {
    if (output->error()) outcome_.stream_error = output->error();
  }
  if (outcome_.status.value_or(0) != 0) outcome_.printed = printed_.text();
  return std::move(outcome_);
}

}  // namespace

Result<void> greet_monitor(const sys::Fd& socket, const AttachOptions& options) {
  int flags = 0;
  if (options.input) flags |= monitor::kWantsInput;
  if (options.must_see_all) flags |= monitor::kMustSeeAll;
  if (options.ends_input) flags |= monitor::kEndsInput;
  char hello = static_cast<char>(flags);
  TRY(send(socket, FromClient::hello, byte_of(hello)));
  if (options.terminal) send_size(socket);
  return {};
}

Result<Attached> stay_attached(const Context& context, sys::Fd socket, AttachOptions options) {
  Client client(std::move(socket), std::move(options), context.log);
  TRY(client.open());
  return client.stay();
}

}  // namespace berth::engine
