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

/// What a container's processes are connected to, from one start to its end: three pipes (standard
/// input may be /dev/null), or a terminal.
class Streams {
 public:
  /// `directory`: where the socket for the terminal is made.  Errors: io.
  static Result<Streams> open(Terminal terminal, KeepInput input, const sys::Fd& directory);

  /// What berth-runtime is given: standard streams, and flags for a terminal.
  void give_to(sys::SpawnOptions& spawn) const;
  /// After berth-runtime has created the container: our copies of its ends are closed, and the
  /// terminal has come.  Errors: bug (none came), io.
  Result<void> given(const sys::Fd& directory);

  /// Leaves copies of our ends in `queue`, from which adopt() gets them when this process was
  /// killed. They stay there until forget().
  Result<void> park(const sys::Fd& queue, pid_t pid) const;
  struct Adopted;
  /// What was parked, and the container's first process; nothing when there is none.
  static Result<std::optional<Adopted>> adopt(const sys::Fd& queue);
  static void forget(const sys::Fd& queue);
  /// Parks anew when an end of ours was closed since: a copy that is parked keeps it open.
  /// `from` is the end of the queue that adopt() reads.
  void park_again(const sys::Fd& queue, const sys::Fd& from, pid_t pid);

  /// To the container's standard input, as soon as it takes them.
  void input(std::string_view bytes);
  /// No more input, once all of it was taken. A terminal stays.
  void input_end();
  bool is_full() const { return !pending_.empty(); }
  void resize(sys::WindowSize size);

  /// Appends what has to be waited for; without `Output::wanted` the container waits for us.
  enum class Output { wanted, full };
  void add_to(std::vector<pollfd>& entries, Output output) const;
  /// A piece of what the container has written, or what it takes of its input.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void output(FromMonitor stream, std::string_view bytes) = 0;
    /// How many bytes are best read at once, at most kMaxData.
    virtual size_t best_piece() const = 0;
    /// False: somebody is behind, and the container has to wait.
    virtual bool wants_more() const = 0;
  };
  void serve(const std::vector<pollfd>& entries, size_t first, Sink& sink);
  /// What is left after the container's end.
  void drain(Sink& sink);

 private:
  struct Source {
    sys::Fd fd;
    FromMonitor stream = FromMonitor::output;
  };
  void flush_input();
  /// False at the end of the stream, or when there is nothing now.
  bool read(Source& source, Sink& sink);

  // Ends that the container gets.
  sys::Fd child_in_;
  sys::Fd child_out_;
  sys::Fd child_err_;
  sys::Fd console_;  ///< the socket that receives the terminal
  // Ours.
  sys::Fd in_;  ///< a pipe; of a terminal it is a copy of its source
  std::vector<Source> sources_;
  bool terminal_ = false;
  std::string pending_;  ///< input that found no room
  bool ending_ = false;  ///< input ends after what is pending
  bool closed_ = false;  ///< in_ was closed and is still parked
  std::optional<sys::WindowSize> size_;
};

struct Streams::Adopted {
  Streams streams;
  pid_t pid = 0;
};

inline constexpr const char* kConsoleSocket = "console.sock";

}  // namespace berth::monitor
