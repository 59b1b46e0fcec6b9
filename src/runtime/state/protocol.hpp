// SPDX-License-Identifier: Apache-2.0
// Runs as: both sides of the clone. Capabilities: none needed. Hostile: nothing; both ends are ours
// until the container's program runs, and exec closes the child's end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// All that berth-runtime and the container's first process say to each other.
enum class Message : uint32_t {
  // to the child
  ids_mapped,     ///< the maps of its user namespace are written
  cgroup_joined,  ///< it is in its cgroups (in `text`, if systemd did it); `number`: its pid
  confined,       ///< its device rules hold; `number` instructions of seccomp are in the buffer
  hooks_done,     ///< the hooks it asked for have ended well
  // to the parent
  hooks_due,  ///< run the hooks of stage `text`
  console,    ///< the terminal's master comes along
  born,       ///< exec's process is another one than was cloned; its pidfd comes along
  listener,   ///< the seccomp listener is descriptor `number`; an empty message says it is taken
  ready,      ///< everything is done but the program; waits for `start`
  failed,     ///< the report says why
};

/// Which exit code a failure deserves: that of the engine or that of the command.
enum class Stage : uint32_t { engine, command };

/// An Error in a fixed size, so that a child can tell it in one write.
struct ChildReport {
  Message message = Message::failed;
  Stage stage = Stage::engine;
  Kind kind = Kind::bug;
  int32_t sys_errno = 0;
  int64_t number = 0;
  char text[512] = {};
  char hint[128] = {};
};

/// The error as a report: its contexts and its text joined, cut where they do not fit.
ChildReport to_report(const Error& error, Stage stage);
/// What to_report() was given, its contexts now part of the text.
Error to_error(const ChildReport& report);

/// One end of the talk.
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
  /// The same with what came along. Errors: the same.
  Result<Incoming> expect_passed(Message wanted) const;

  /// Says that the seccomp listener is open as `listener`, and waits until it has been taken. With
  /// write(2) and read(2) alone: the filter that it belongs to holds already.
  Result<void> offer_listener(int listener) const;
  /// The other side of it.
  Result<void> acknowledge_listener() const;

  const sys::Fd& fd() const { return fd_; }

 private:
  sys::Fd fd_;
};

}  // namespace berth::runtime
