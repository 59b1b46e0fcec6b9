// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "logs/writer.hpp"
#include "sys/fd/fd.hpp"

/// The small process that stays with a container: it carries its streams between the container, the
/// log and whoever is attached, writes down how it ended, and starts it again where that is wanted.
/// It stays in memory once per container, so it links little and keeps no more than its buffers.
/// Its parent is berth-holder, which starts it again, with Options::adopt, when it was killed.
namespace berth::monitor {

/// A process that was known before: its id may have been given to another one since.
struct KnownProcess {
  int32_t pid = 0;
  uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
};

struct Options {
  std::string id;
  std::string directory;     ///< the container's, absolute: log
  std::string files;         ///< absolute: container.json, which starts and ends are added to
  std::string state;         ///< absolute, ours alone: socket, marks (monitor/protocol.hpp)
  std::string bundle;        ///< absolute
  std::string runtime;       ///< path of berth-runtime
  std::string runtime_root;  ///< its --root
  sys::Fd lock;              ///< held until the container has ended
  /// Gets "\n" when the command runs, else the report of what failed (engine/container/launch.hpp).
  sys::Fd report;
  sys::Fd client;  ///< the first one who is attached; may be empty
  /// Says how much of the bundle is there (berth-runtime run --caller-fd); empty: all of it.
  sys::Fd caller;
  sys::Fd parked;  ///< the queue that keeps our ends of the streams
  sys::Fd told;    ///< its other end: berth-holder tells here which of its children have ended
  std::optional<logs::Settings> log;  ///< none: what it writes is not kept
  bool terminal = false;
  bool keep_stdin = false;  ///< the container's standard input stays open without a writer
  std::string journal;      ///< absolute: what happens is added to it (events/journal.hpp)
  std::string names;        ///< absolute: the directory of the links that bind names
  bool remove = false;      ///< --rm: directory, files and name go at the end
  bool adopt = false;       ///< the monitor before this one was killed
  /// With adopt, and where nothing is parked: a container that runs without anybody.
  std::optional<KnownProcess> orphan;
};

/// Creates and starts the container, or takes over one that has lost its monitor; stays until it
/// has ended for good, and cleans up after it. Of a container that could not be started nothing
/// runs. Errors: those that the engine has been told through `report` already.
Result<void> watch(Options options);

}  // namespace berth::monitor
