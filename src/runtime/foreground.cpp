// SPDX-License-Identifier: Apache-2.0
#include "runtime/foreground.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/process/pty.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kBuffer = size_t{16} << 10;
constexpr std::chrono::milliseconds kDrain{0};

/// Copies data between our standard streams and the container's terminal.
class Relay {
 public:
  static Result<Relay> open(sys::Fd console) {
    Relay relay;
    relay.console_ = std::move(console);
    if (!relay.console_) return relay;
    relay.follow_size();
    if (sys::is_terminal(STDIN_FILENO)) relay.raw_ = TRY(sys::RawMode::enter(STDIN_FILENO));
    return relay;
  }

  void follow_size() {
    if (!console_ || !sys::is_terminal(STDOUT_FILENO)) return;
    sys::Fd terminal(STDOUT_FILENO);
    auto size = sys::window_size(terminal);
    terminal.release();
    if (size.ok()) ignore(sys::set_window_size(console_, *size));  // a size is only a hint
  }

  pollfd input() const {
    bool wanted = console_ && input_open_ && typed_.empty();
    return {wanted ? STDIN_FILENO : -1, POLLIN, 0};
  }
  pollfd output() const {
    if (!console_) return {-1, 0, 0};
    return {console_.get(), static_cast<short>(POLLIN | (typed_.empty() ? 0 : POLLOUT)), 0};
  }

  void serve(const pollfd& in, const pollfd& out) {
    if (in.revents != 0) read_input();
    if (out.revents & POLLOUT) pass_input();
    if (out.revents & (POLLIN | POLLHUP | POLLERR)) pass_output();
  }

  /// Copies the rest: the last output of an ended container is still in the terminal.
  void drain() {
    while (console_) {
      std::vector<pollfd> entries{{console_.get(), POLLIN, 0}};
      auto ready = sys::poll(entries, kDrain);
      if (!ready.ok() || *ready == 0 || !(entries[0].revents & POLLIN)) return;
      pass_output();
    }
  }

 private:
  static bool has_ended(const Result<size_t>& count) {
    return count.ok() ? *count == 0 : count.error().kind != Kind::busy;
  }
  void read_input() {
    std::array<char, kBuffer> buffer;
    sys::Fd in(STDIN_FILENO);
    auto count = sys::read_some(in, buffer, "standard input");
    in.release();
    if (count.ok() && *count > 0) {
      typed_.assign(buffer.data(), *count);
    } else if (has_ended(count)) {
      input_open_ = false;
      typed_.assign(1, kEndOfInput);
    }
  }
  void pass_input() {
    auto count = sys::write_some(console_, typed_, "terminal");
    if (count.ok()) typed_.erase(0, *count);
    if (!count.ok() && count.error().kind != Kind::busy) typed_.clear();
  }
  void pass_output() {
    std::array<char, kBuffer> buffer;
    auto count = sys::read_some(console_, buffer, "terminal");
    if (count.ok() && *count > 0) {
      sys::Fd out(STDOUT_FILENO);
      // The container must not stop when its output has no reader any more.
      ignore(sys::write_all(out, {buffer.data(), *count}, "standard output"));
      out.release();
    } else if (has_ended(count)) {
      console_.reset();  // every process has closed its end
    }
  }

  static constexpr char kEndOfInput = 4;  // Ctrl-D, sent when our input ends

  sys::Fd console_;
  sys::RawMode raw_;
  std::string typed_;
  bool input_open_ = true;
};

void pass_signals(const sys::Fd& signals, const sys::Process& process, Relay& relay) {
  while (true) {
    auto received = sys::read_signal(signals);
    if (!received.ok() || !*received) return;
    if ((*received)->number == SIGWINCH) {
      relay.follow_size();
    } else {
      ignore(process.signal((*received)->number));  // the process may have ended by itself
    }
  }
}

}  // namespace

Result<sys::Fd> catch_signals() {
  std::vector<int> numbers = sys::forwardable_signals();
  numbers.push_back(SIGWINCH);
  return sys::receive_signals(numbers);
}

Result<sys::ExitStatus> stay(sys::Process& process, const sys::Fd& signals, sys::Fd console) {
  Relay relay = TRY(Relay::open(std::move(console)));
  while (true) {
    std::vector<pollfd> entries{{process.pidfd().get(), POLLIN, 0},
                                {signals.get(), POLLIN, 0},
                                relay.input(),
                                relay.output()};
    TRY(sys::poll(entries, std::nullopt));
    if (entries[1].revents != 0) pass_signals(signals, process, relay);
    relay.serve(entries[2], entries[3]);
    if (entries[0].revents != 0) {
      relay.drain();
      return process.wait();
    }
  }
}

}  // namespace berth::runtime
