// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "logs/writer.hpp"
#include "sys/fd/fd.hpp"

/// The small process that stays with a container: it passes the streams between the container, the
/// log and attached clients, records how the container ended, and restarts it if configured. There
/// is one such process per container, so it links little and keeps only its buffers. Its parent is
/// berth-holder, which starts it again, with Options::adopt, if it was killed.
namespace berth::monitor {

/// A process, identified by its start time too: the pid may belong to another process by now.
struct KnownProcess {
  int32_t pid = 0;
  uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
};

struct Options {
  std::string id;
  std::string directory;  ///< the container's directory, absolute: log
  std::string files;      ///< absolute: container.json, to which starts and ends are appended
  std::string state;      ///< absolute, only for the monitor: socket, marks (monitor/protocol.hpp)
  std::string bundle;     ///< absolute
  std::string runtime;    ///< path of berth-runtime
  std::string runtime_root;  ///< --root of berth-runtime
  sys::Fd lock;              ///< held until the container has ended
  /// Receives "\n" once the command runs, otherwise the report of the failure
  /// (engine/container/launch.hpp).
  sys::Fd report;
  sys::Fd client;  ///< the first attached client; may be empty
  /// Says how much of the bundle exists (berth-runtime run --caller-fd); empty: all of it.
  sys::Fd caller;
  sys::Fd parked;  ///< a socket: its queue keeps our ends of the streams
  sys::Fd told;    ///< the other end of `parked`: berth-holder reports ended children
  std::optional<logs::Settings> log;  ///< none: output is not kept
  bool terminal = false;
  bool keep_stdin = false;  ///< the container's standard input stays open without a writer
  std::string journal;      ///< absolute: the journal for events (events/journal.hpp)
  std::string names;        ///< absolute: the directory with a link per container name
  bool remove = false;      ///< --rm: remove directory, files and name at the end
  bool adopt = false;       ///< the previous monitor was killed
  /// With `adopt`, if no streams are parked: the first process of a container that runs without a
  /// monitor.
  std::optional<KnownProcess> orphan;
};

/// Creates and starts the container, or takes over a container that has lost its monitor. Stays
/// until the container has ended and is not restarted, and cleans up after it. If the container
/// cannot be started, none of its processes is left. Errors: those that the engine has already
/// received through `report`.
Result<void> watch(Options options);

}  // namespace berth::monitor
