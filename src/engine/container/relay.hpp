// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "known_error/find.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {

/// Whether a signal to this process means that the container shall end.
bool asks_for_end(int number);

/// A descriptor of our own for a standard stream. Reopens a terminal or a pipe as non-blocking if
/// permitted: a write to a full pipe must not keep us from passing on signals, and the caller's
/// open file must not become non-blocking.  Errors: io.
Result<sys::Fd> open_stream(int number);

/// Copies bytes from one descriptor to another, at most one buffer at a time.
class Copy {
 public:
  Copy() = default;  ///< ended
  /// `name`: that of our standard stream, for errors.
  Copy(sys::Fd from, sys::Fd to, std::string name);

  bool ended() const { return !from_; }
  /// The event to wait for before the next step.
  pollfd wanted() const;
  /// One read or one write. Ends at the end of the source, or when the target accepts no more.
  void step();
  /// Closes both descriptors.
  void end();
  /// Keeps the last bytes copied, for printed().
  void keep_last() { last_.emplace(); }
  std::string_view printed() const { return last_ ? last_->text() : std::string_view(); }
  /// Why the copy ended before its source did. Not set if the reader of the target went away.
  const std::optional<Error>& error() const { return error_; }

 private:
  void fill();
  void flush();
  void fail(Error error);

  sys::Fd from_;
  sys::Fd to_;
  std::string name_;
  std::string buffer_;
  size_t begin_ = 0;  ///< buffer_[begin_, end_) is not written yet
  size_t end_ = 0;
  std::optional<Error> error_;
  std::optional<known_error::Tail> last_;
};

enum class Input { none, given };
enum class Guard { no, yes };

/// Connects our standard streams with those of a foreground container. A pipe, a socket and
/// /dev/null are passed on. Everything else is replaced by a pipe: through /proc/self/fd the
/// container could reopen a file or a terminal with other access rights. Standard output and error
/// that are the same file share one pipe, which keeps their order.
class Relay {
 public:
  /// Input::none reads /dev/null. Guard::no passes on every stream as it is: for a container with a
  /// terminal of its own, since it gets none of our streams.
  /// Errors: io.
  static Result<Relay> open(Input input, Guard guard);

  /// Sets in, out and err; do not move the relay until spawn() has returned.
  void give_to(sys::SpawnOptions& options) const;
  /// Closes our copies of the container's ends of the pipes: with them open, we would never see the
  /// end of its output. Call once the container has its ends.
  void given();

  /// Appends the events to wait for.
  void add_to(std::vector<pollfd>& entries) const;
  /// Serves the entries that add_to() appended from `first` on.
  void serve(const std::vector<pollfd>& entries, size_t first);
  /// After the container's end: delivers its remaining output, until a signal of `signals` asks us
  /// to end. Reads no more from our standard input.
  /// Errors: io (poll), and the first error that cut a stream short.
  Result<void> finish(const sys::Fd& signals);
  /// The last output of the container, as far as it passed through us.
  std::string printed() const;

 private:
  static constexpr size_t kStreams = 3;

  std::array<sys::Fd, kStreams> given_;  ///< the container's ends; empty: ours is passed on
  std::array<Copy, kStreams> copies_;
  bool errors_with_output_ = false;
};

}  // namespace berth::engine
