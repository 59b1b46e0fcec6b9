// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

/// The small process that stays with a detached container: it holds the container's lock, writes
/// its output to a log and its exit status to a file. It stays in memory once per container, so it
/// links little and keeps no more than its buffers.
namespace berth::monitor {

struct Options {
  std::string id;
  std::string directory;     ///< the container's, absolute: log
  std::string files;         ///< absolute: container.json, which the exit status is added to
  std::string bundle;        ///< absolute
  std::string runtime;       ///< path of berth-runtime
  std::string runtime_root;  ///< its --root
  sys::Fd lock;              ///< held until this process ends
  /// Gets "\n" when the command runs, else the report of what failed (engine/launch.hpp).
  sys::Fd report;
  bool terminal = false;
  bool keep_stdin = false;  ///< the container's standard input stays open without a writer
  std::string name_link;    ///< binds the container's name
  bool remove = false;      ///< --rm: directory, files and name go at the end
};

/// Creates and starts the container, stays until it has ended, and cleans up after it. Of a
/// container that could not be started nothing stays.
/// Errors: those that the engine has been told through `report` already.
Result<void> watch(Options options);

}  // namespace berth::monitor
