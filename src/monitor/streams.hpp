// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "monitor/protocol.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"
#include "sys/process/pty.hpp"

namespace berth::monitor {

enum class Terminal { no, yes };
enum class KeepInput { no, yes };

/// The standard streams of a container, from one start to its end: three pipes (standard input may
/// be /dev/null), or a terminal.
class Streams {
 public:
  /// `directory`: for the socket that receives the terminal.  Errors: io.
  static Result<Streams> open(Terminal terminal, KeepInput input, const sys::Fd& directory);

  /// Passes the container's ends to berth-runtime: as its standard streams, for a terminal by
  /// flags.
  void give_to(sys::SpawnOptions& spawn) const;
  /// Call after berth-runtime has created the container: closes our copies of the container's ends,
  /// and receives the terminal.  Errors: bug (no terminal arrived), io.
  Result<void> given(const sys::Fd& directory);

  /// Puts copies of our ends into `queue`. They stay there until forget(); if this process is
  /// killed, the next monitor takes them with adopt().
  Result<void> park(const sys::Fd& queue, pid_t pid) const;
  struct Adopted;
  /// The parked ends, and the container's first process. Nothing if no ends are parked.
  static Result<std::optional<Adopted>> adopt(const sys::Fd& queue);
  static void forget(const sys::Fd& queue);
  /// Parks our ends again if one of them was closed since, because its parked copy keeps it open.
  /// `from` is the end of the queue that adopt() reads.
  void park_again(const sys::Fd& queue, const sys::Fd& from, pid_t pid);

  /// Queues bytes for the container's standard input.
  void input(std::string_view bytes);
  /// Ends the input, after everything was written. A terminal stays open.
  void input_end();
  bool is_full() const { return !pending_.empty(); }
  void resize(sys::WindowSize size);

  enum class Output { wanted, full };
  /// Appends the descriptors to poll; without `Output::wanted` the container has to wait.
  void add_to(std::vector<pollfd>& entries, Output output) const;
  /// Receives the container's output in pieces, and says how much it can take.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void output(FromMonitor stream, std::string_view bytes) = 0;
    /// The best size of the next read, at most kMaxData.
    virtual size_t best_piece() const = 0;
    /// False: a client is behind, and the container has to wait.
    virtual bool wants_more() const = 0;
  };
  void serve(const std::vector<pollfd>& entries, size_t first, Sink& sink);
  /// Reads the rest after the container's end.
  void drain(Sink& sink);

 private:
  struct Source {
    sys::Fd fd;
    FromMonitor stream = FromMonitor::output;
  };
  void flush_input();
  /// Reads one piece. False at the end of the stream, or if no data is available.
  bool read(Source& source, Sink& sink);

  // The container's ends.
  sys::Fd child_in_;
  sys::Fd child_out_;
  sys::Fd child_err_;
  sys::Fd console_;  ///< the socket that receives the terminal
  // Our ends.
  sys::Fd in_;  ///< a pipe; for a terminal a copy of the fd that is read
  std::vector<Source> sources_;
  bool terminal_ = false;
  std::string pending_;  ///< input that is not written yet
  bool ending_ = false;  ///< input ends after the pending bytes
  bool closed_ = false;  ///< in_ was closed but is still parked
  std::optional<sys::WindowSize> size_;
};

struct Streams::Adopted {
  Streams streams;
  pid_t pid = 0;
};

inline constexpr const char* kConsoleSocket = "console.sock";

}  // namespace berth::monitor
