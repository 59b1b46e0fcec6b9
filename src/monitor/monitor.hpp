// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "logs/writer.hpp"
#include "sys/fd/fd.hpp"

/// The small process that stays with a container: it passes its streams between the container, the
/// log and attached clients, records how it ended, and restarts it if configured. It stays in
/// memory once per container, so it links little and keeps no more than its buffers. Its parent is
/// berth-holder, which restarts it, with Options::adopt, if it was killed.
namespace berth::monitor {

/// A known process: its pid may belong to another one by now.
struct KnownProcess {
  int32_t pid = 0;
  uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
};

struct Options {
  std::string id;
  std::string directory;     ///< the container's, absolute: log
  std::string files;         ///< absolute: container.json, to which starts and ends are appended
  std::string state;         ///< absolute, ours alone: socket, marks (monitor/protocol.hpp)
  std::string bundle;        ///< absolute
  std::string runtime;       ///< path of berth-runtime
  std::string runtime_root;  ///< its --root
  sys::Fd lock;              ///< held until the container has ended
  /// Receives "\n" when the command runs, else the report of the failure
  /// (engine/container/launch.hpp).
  sys::Fd report;
  sys::Fd client;  ///< the first attached one; may be empty
  /// Says how much of the bundle exists (berth-runtime run --caller-fd); empty: all of it.
  sys::Fd caller;
  sys::Fd parked;                     ///< the queue that keeps our ends of the streams
  sys::Fd told;                       ///< its other end: berth-holder reports ended children here
  std::optional<logs::Settings> log;  ///< none: output is not kept
  bool terminal = false;
  bool keep_stdin = false;  ///< the container's standard input stays open without a writer
  std::string journal;      ///< absolute: the journal for events (events/journal.hpp)
  std::string names;        ///< absolute: the directory of the links that bind names
  bool remove = false;      ///< --rm: remove directory, files and name at the end
  bool adopt = false;       ///< the previous monitor was killed
  /// With adopt, if nothing is parked: a running container without a monitor.
  std::optional<KnownProcess> orphan;
};

/// Creates and starts the container, or takes over one that has lost its monitor; stays until it
/// has ended for good, and cleans up after it. If the container cannot be started nothing of it
/// runs. Errors: those that `report` has told the engine already.
Result<void> watch(Options options);

}  // namespace berth::monitor
