// SPDX-License-Identifier: Apache-2.0
// The child of berth that talks to registries and unpacks images. It reads one request as JSON on
// stdin, and writes events as JSON lines on stdout (image/transfer_protocol.hpp).
#include <unistd.h>

#include <csignal>
#include <exception>
#include <mutex>

#include "image/transfer_protocol.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/signals.hpp"
#include "sys/thread/thread.hpp"
#include "sys/user/credentials.hpp"
#include "transfer/serve.hpp"

namespace berth {
namespace {

constexpr size_t kMaxRequestBytes = size_t{1} << 20;
constexpr std::chrono::seconds kGrace{3};  // the time that threads have to stop

/// Writes events to stdout. If there is no reader any more, the transfer is cancelled.
class Output {
 public:
  explicit Output(transfer::Cancel& cancel) : cancel_(cancel) {}
  ~Output() { fd_.release(); }  // stdout stays open

  void write(const image::TransferEvent& event) {
    std::lock_guard lock(mutex_);
    Result<void> written = sys::write_all(fd_, image::to_json(event), "the events");
    if (!written.ok()) cancel_.request();
  }

 private:
  transfer::Cancel& cancel_;
  std::mutex mutex_;
  sys::Fd fd_{STDOUT_FILENO};
};

/// Turns SIGINT and SIGTERM into a request to stop, and ends the program if that has no effect,
/// because a thread may wait for a layer of another process. The next writer removes the staged
/// files.
void watch_signals(const std::stop_token& stop, const sys::Fd& signals, transfer::Cancel& cancel,
                   Output& output) {
  std::optional<std::chrono::steady_clock::time_point> end;
  while (!stop.stop_requested()) {
    std::vector<pollfd> entries{{signals.get(), POLLIN, 0}};
    if (!sys::poll(entries, std::chrono::milliseconds(50)).ok()) return;
    Result<std::optional<sys::ReceivedSignal>> received = sys::read_signal(signals);
    bool asked = received.ok() && *received && (*received)->number != SIGPIPE;
    if (asked && !end) {
      cancel.request();
      end = std::chrono::steady_clock::now() + kGrace;
    }
    if (end && std::chrono::steady_clock::now() > *end) {
      output.write(make_error(Kind::interrupted, "stopped by a signal"));
      _exit(EXIT_FAILURE);
    }
  }
}

Result<image::TransferResult> run(transfer::Cancel& cancel, Output& output) {
  // SIGPIPE too: a registry that hangs up must only be an error of one connection.
  sys::Fd signals = TRY(sys::receive_signals({SIGINT, SIGTERM, SIGPIPE}));
  auto watcher = sys::start_thread(
      [&](const std::stop_token& stop) { watch_signals(stop, signals, cancel, output); });
  if (!watcher) {
    return make_error(Kind::busy, "start a thread: the limit of processes is reached",
                      "a higher one (ulimit -u, or pids.max of the control group)");
  }
  sys::Fd in(STDIN_FILENO);
  std::string text = TRY(sys::read_all(in, "the request", kMaxRequestBytes));
  auto emit = [&](const image::TransferEvent& event) { output.write(event); };
  image::TransferRequest request = TRY(image::parse_request(text));
  return transfer::serve(request, emit, cancel);
}

}  // namespace
}  // namespace berth

int main() {
  if (!berth::sys::has_standard_streams("berth-transfer")) return EXIT_FAILURE;
  using namespace berth;
  transfer::Cancel cancel;
  Output output(cancel);
  sys::allow_many_files();
  try {
    Result<image::TransferResult> result = run(cancel, output);
    if (result.ok()) {
      output.write(*result);
      return EXIT_SUCCESS;
    }
    output.write(std::move(result).error());
  } catch (const std::exception& exception) {
    output.write(make_error(Kind::bug, std::string("unexpected: ") + exception.what()));
  }
  return EXIT_FAILURE;
}
