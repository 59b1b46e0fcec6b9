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

/// Whether a signal that somebody sends to us means that the container is to end.
bool asks_for_end(int number);

/// Our own handle of a standard stream. A terminal or a pipe is opened anew where that is allowed:
/// a write to one that takes no more must not keep us from passing signals on, and the caller's
/// open file is not ours to make non-blocking.  Errors: io.
Result<sys::Fd> open_stream(int number);

/// Copies bytes from one descriptor to another, at most one buffer of them at a time.
class Copy {
 public:
  Copy() = default;  ///< ended
  /// `name` is what errors call the end that is not the container's.
  Copy(sys::Fd from, sys::Fd to, std::string name);

  bool ended() const { return !from_; }
  /// What has to be waited for before the next step.
  pollfd wanted() const;
  /// One read or one write. It ends with the end of the source, or when the target takes no more.
  void step();
  /// Lets go of both descriptors.
  void end();
  /// Keeps the last bytes that come by, for printed().
  void keep_last() { last_.emplace(); }
  std::string_view printed() const { return last_ ? last_->text() : std::string_view(); }
  /// Why it ended before its source did, unless the reader of the target just went away.
  const std::optional<Error>& error() const { return error_; }

 private:
  void fill();
  void flush();
  void fail(Error error);

  sys::Fd from_;
  sys::Fd to_;
  std::string name_;
  std::string buffer_;
  size_t begin_ = 0;  ///< buffer_[begin_, end_) was read and is still to be written
  size_t end_ = 0;
  std::optional<Error> error_;
  std::optional<known_error::Tail> last_;
};

enum class Input { none, given };
enum class Guard { no, yes };

/// What stands between our standard streams and those of a container in the foreground. A pipe, a
/// socket and /dev/null are passed on. Of everything else the container gets a pipe: through
/// /proc/self/fd it could open a file or a terminal again with other rights than were given to it.
/// Standard output and error that are the same file share one pipe, so that their order stays.
class Relay {
 public:
  /// With Input::none /dev/null is read. Guard::no passes everything on, for a container with a
  /// terminal of its own, which sees none of our streams.
  /// Errors: io.
  static Result<Relay> open(Input input, Guard guard);

  /// Sets in, out and err; the relay must stay where it is until spawn() has returned.
  void give_to(sys::SpawnOptions& options) const;
  /// The container has its ends; ours are closed, or we would wait for ourselves.
  void given();

  /// Appends what has to be waited for.
  void add_to(std::vector<pollfd>& entries) const;
  /// Serves the entries that add_to() appended from `first` on.
  void serve(const std::vector<pollfd>& entries, size_t first);
  /// After the container's end: delivers what it wrote, until a signal of `signals` that asks us to
  /// end. Nothing more is read from our standard input.
  /// Errors: io (poll), and the first one that cut a stream short.
  Result<void> finish(const sys::Fd& signals);
  /// The last of what the container has printed, as far as it came through us.
  std::string printed() const;

 private:
  static constexpr size_t kStreams = 3;

  std::array<sys::Fd, kStreams> given_;  ///< the container's; empty: ours as it is
  std::array<Copy, kStreams> copies_;
  bool errors_with_output_ = false;
};

}  // namespace berth::engine
