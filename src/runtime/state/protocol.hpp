// SPDX-License-Identifier: Apache-2.0
// Runs as: both sides of the clone. Capabilities: none needed. Hostile input: none; both ends are
// ours until the container's program runs, and exec closes the child's end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// The messages between berth-runtime and the container's first process.
enum class Message : uint32_t {
  // to the child
  ids_mapped,     ///< the maps of its user namespace are written
  cgroup_joined,  ///< the child is in its cgroups (`text`: their path, if systemd made them);
                  ///< `number`: its pid
  confined,       ///< the device rules are in force; `number` instructions of seccomp are in the
                  ///< buffer
  hooks_done,     ///< the hooks that the child asked for have succeeded
  // to the parent
  hooks_due,  ///< run the hooks of stage `text`
  console,    ///< the terminal's master comes along
  born,       ///< the process of exec is not the cloned one but another; its pidfd comes along
  listener,   ///< the seccomp listener is descriptor `number`; an empty message acknowledges it
  ready,      ///< everything is done except executing the program; waits for `start`
  failed,     ///< the report says why
};

/// Whether a failure gets an exit code of the engine or of the command.
enum class Stage : uint32_t { engine, command };
inline constexpr int kEngineFailed = 125;

/// An Error in a fixed size, so that a child can send it in one write.
struct ChildReport {
  Message message = Message::failed;
  Stage stage = Stage::engine;
  Kind kind = Kind::bug;
  int32_t sys_errno = 0;
  int64_t number = 0;
  char text[512] = {};
  char hint[128] = {};
};

/// Converts an error into a report: joins the contexts and the message, and truncates the result.
ChildReport to_report(const Error& error, Stage stage);
/// Converts a report back into an error; the contexts are part of the message then.
Error to_error(const ChildReport& report);

/// One end of the connection.
class Channel {
 public:
  explicit Channel(sys::Fd fd) : fd_(std::move(fd)) {}

  Result<void> send(Message message, std::string_view text = {}, int64_t number = 0,
                    const sys::Fd& passed = {}) const;
  Result<void> send(const ChildReport& report) const;

  struct Incoming {
    ChildReport report;
    sys::Fd passed;
  };
  /// The next message, or nothing when the other end is closed.
  Result<std::optional<Incoming>> receive() const;
  /// Waits for `wanted`. Errors: interrupted (the other side has ended), bug (another message).
  Result<ChildReport> expect(Message wanted) const;
  /// As expect(), and returns the passed descriptor too. Errors: the same.
  Result<Incoming> expect_passed(Message wanted) const;

  /// Announces `listener`, the descriptor of the seccomp listener, and waits until it has been
  /// taken. Uses only write(2) and read(2): the filter is active already.
  Result<void> offer_listener(int listener) const;
  /// Answers offer_listener().
  Result<void> acknowledge_listener() const;

  const sys::Fd& fd() const { return fd_; }

 private:
  sys::Fd fd_;
};

}  // namespace berth::runtime
