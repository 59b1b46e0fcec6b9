// SPDX-License-Identifier: Apache-2.0
#include "monitor/streams.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/net/packet.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/stream.hpp"

namespace berth::monitor {
namespace {

/// The size of the pipe for standard output that goes to a log, so that the container continues
/// while we write. Larger pipes would use up the limit for all pipes of a user, 64 MiB.
constexpr unsigned kOutputPipe = 256U << 10;
constexpr int kMostPieces = 16;

/// The content of the packet that holds our ends while it is in the queue.
struct Parked {
  int32_t pid = 0;
  int32_t terminal = 0;
};

}  // namespace

Result<Streams> Streams::open(Terminal terminal, KeepInput input, const sys::Fd& directory) {
  Streams streams;
  streams.terminal_ = terminal == Terminal::yes;
  streams.child_in_ = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  if (streams.terminal_) {
    TRY(sys::remove_entry(directory, kConsoleSocket));  // left by a monitor that was killed
    // The path goes through our descriptor, because the path of a socket has at most 107 bytes.
    streams.console_ = TRY(sys::listen_unix(sys::fd_path(directory) + "/" + kConsoleSocket));
    return streams;
  }
  if (input == KeepInput::yes) {
    sys::Pipe in = TRY(sys::make_pipe());
    TRY(sys::set_nonblocking(in.write));
    streams.child_in_ = std::move(in.read);
    streams.in_ = std::move(in.write);
  }
  sys::Pipe out = TRY(sys::make_pipe());
  sys::Pipe err = TRY(sys::make_pipe());
  sys::widen_pipe(out, kOutputPipe);
  TRY(sys::set_nonblocking(out.read));
  TRY(sys::set_nonblocking(err.read));
  streams.child_out_ = std::move(out.write);
  streams.child_err_ = std::move(err.write);
  streams.sources_.push_back({std::move(out.read), FromMonitor::output});
  streams.sources_.push_back({std::move(err.read), FromMonitor::errors});
  return streams;
}

void Streams::give_to(sys::SpawnOptions& spawn) const {
  spawn.in = &child_in_;
  if (child_out_) spawn.out = &child_out_;
  if (child_err_) spawn.err = &child_err_;
}

Result<void> Streams::given(const sys::Fd& directory) {
  child_in_.reset();
  child_out_.reset();
  child_err_.reset();
  if (!terminal_) return {};
  sys::Fd connection = TRY(sys::accept_connection(console_));
  char name[256];
  sys::Received received = TRY(sys::receive_message(connection, name, sizeof name));
  if (!received.passed) return make_error(Kind::bug, "berth-runtime sent no terminal");
  console_.reset();
  TRY(sys::remove_entry(directory, kConsoleSocket));
  TRY(sys::set_nonblocking(received.passed));
  in_ = TRY(sys::duplicate(received.passed));
  sources_.push_back({std::move(received.passed), FromMonitor::output});
  if (size_) resize(*size_);
  return {};
}

Result<void> Streams::park(const sys::Fd& queue, pid_t pid) const {
  std::vector<int> ours;
  for (const Source& source : sources_) ours.push_back(source.fd.get());
  if (in_ && !terminal_) ours.push_back(in_.get());
  Parked parked{pid, terminal_ ? 1 : 0};
  std::string_view bytes(reinterpret_cast<const char*>(&parked), sizeof parked);
  if (!TRY(sys::offer_packet(queue, bytes, {}, ours))) {
    return make_error(Kind::bug, "the streams of the container cannot be parked");
  }
  return {};
}

Result<std::optional<Streams::Adopted>> Streams::adopt(const sys::Fd& queue) {
  Parked parked;
  std::array<char, sizeof parked> bytes;
  auto packet = TRY(sys::take_packet(queue, bytes, sys::Take::peek));
  if (!packet || packet->size != sizeof parked || packet->passed.empty()) {
    return std::optional<Adopted>();
  }
  std::memcpy(&parked, bytes.data(), sizeof parked);
  Adopted adopted;
  adopted.pid = parked.pid;
  Streams& streams = adopted.streams;
  streams.terminal_ = parked.terminal != 0;
  size_t outputs = streams.terminal_ ? 1 : 2;
  if (packet->passed.size() < outputs)
    return make_error(Kind::bug, "streams were parked by halves");
  if (streams.terminal_) {
    streams.in_ = TRY(sys::duplicate(packet->passed[0]));
  } else if (packet->passed.size() > outputs) {
    streams.in_ = std::move(packet->passed[outputs]);
  }
  for (size_t i = 0; i < outputs; ++i) {
    streams.sources_.push_back(
        {std::move(packet->passed[i]), i == 0 ? FromMonitor::output : FromMonitor::errors});
  }
  return std::optional<Adopted>(std::move(adopted));
}

void Streams::forget(const sys::Fd& queue) {
  std::array<char, sizeof(Parked)> bytes;
  while (true) {
    auto packet = sys::take_packet(queue, bytes);
    if (!packet.ok() || !*packet || (*packet)->size == 0) return;
  }
}

void Streams::park_again(const sys::Fd& queue, const sys::Fd& from, pid_t pid) {
  if (!closed_) return;
  closed_ = false;
  // Parks the new packet before the old one is received, so that the ends are always parked.
  if (!park(queue, pid).ok()) return;
  std::array<char, sizeof(Parked)> bytes;
  ignore(sys::take_packet(from, bytes));
}

void Streams::input(std::string_view bytes) {
  if (!in_) return;
  pending_.append(bytes);
  flush_input();
}

void Streams::input_end() {
  if (terminal_) return;
  ending_ = true;
  flush_input();
}

void Streams::flush_input() {
  while (in_ && !pending_.empty()) {
    auto count = sys::write_some(in_, pending_, "standard input of the container");
    if (!count.ok() && count.error().kind == Kind::busy) return;
    if (!count.ok()) {  // there is no reader any more
      pending_.clear();
      ending_ = !terminal_;
      break;
    }
    pending_.erase(0, *count);
  }
  if (!ending_ || !in_) return;
  in_.reset();
  closed_ = true;
}

void Streams::resize(sys::WindowSize size) {
  size_ = size;
  if (terminal_ && in_) ignore(sys::set_window_size(in_, size));  // a size is only a hint
}

void Streams::add_to(std::vector<pollfd>& entries, Output output) const {
  entries.push_back({pending_.empty() ? -1 : in_.get(), POLLOUT, 0});
  for (const Source& source : sources_) {
    entries.push_back({output == Output::wanted ? source.fd.get() : -1, POLLIN, 0});
  }
}

void Streams::serve(const std::vector<pollfd>& entries, size_t first, Sink& sink) {
  if (entries[first].revents != 0) flush_input();
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (entries[first + 1 + i].revents == 0) continue;
    // Reads several pieces from a busy writer without polling in between.
    for (int pieces = 0; pieces < kMostPieces && read(sources_[i], sink); ++pieces) {
      if (!sink.wants_more()) break;
    }
  }
}

bool Streams::read(Source& source, Sink& sink) {
  // On the stack, which exists anyway; a buffer on the heap would stay resident.
  std::array<char, kMaxData> buffer;
  size_t most = std::min(sink.best_piece(), buffer.size());
  auto count = sys::read_some(source.fd, std::span(buffer.data(), most), "output of the container");
  if (!count.ok() && count.error().kind == Kind::busy) return false;
  if (!count.ok() || *count == 0) {
    source.fd.reset();
    return false;
  }
  sink.output(source.stream, std::string_view(buffer.data(), *count));
  return true;
}

// All writers ended with the container's pid namespace, so the rest of the output is already in the
// pipes. If the pid namespace is the host's, a process may live on; this does not wait for it.
void Streams::drain(Sink& sink) {
  constexpr size_t kMost = size_t{8} << 20;
  for (Source& source : sources_) {
    for (size_t pieces = 0; source.fd && pieces < kMost / kMaxData; ++pieces) {
      if (!read(source, sink)) break;
    }
  }
}

}  // namespace berth::monitor
