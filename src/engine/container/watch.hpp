// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/container/launch.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"
#include "oci/image_spec.hpp"
#include "record/record.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {

/// How to start a container's monitor.
struct Watch {
  const ContainerDirectory& directory;  ///< its lock is passed to the monitor
  bool terminal = false;
  bool interactive = false;
  bool remove = false;  ///< --rm
  RestartPolicy restart = {};
  std::string label = {};  ///< the container's name in errors, instead of its id
  sys::Fd client = {};     ///< a connection to a client that attaches at once; may be empty
  LogSettings log = {};
  std::optional<oci::Healthcheck> health = {};  ///< from health_check()
};
/// From the request; without `client`.
Watch watch_of(const ContainerDirectory& directory, const RunRequest& request);

/// The start of a container with a monitor. Monitor and berth-runtime are executed first and wait:
/// their start-up runs in parallel with our decisions.
class WatchedStart {
 public:
  /// The bundle need not exist yet. The monitor takes over the lock of the directory.
  /// Errors: io.
  static Result<WatchedStart> open(const Context& context, Watch watch);
  WatchedStart(WatchedStart&&) = default;
  WatchedStart& operator=(WatchedStart&&) = default;
  /// Without go() nothing is started, and no process is left.
  ~WatchedStart();

  /// The config of the bundle is written: berth-runtime may plan the container.
  void announce() const;

  /// Everything is written: creates the container.
  void go() const;

  /// After go(). Returns when the command runs, or failed to start. In the second case, and after
  /// an error, no process of it is left.
  /// Errors: those of berth-runtime, io, bug.
  Result<std::optional<Ended>> wait();

 private:
  explicit WatchedStart(Log& log) : log_(&log) {}

  Log* log_;
  std::string id_;
  std::string label_;
  sys::Process holder_;
  sys::Fd caller_;
  sys::Fd report_;
};

/// Gives a running container that has lost berth-holder and berth-monitor new ones. Its streams
/// ended with the old ones: further output is lost, but its end is recorded.
/// Errors: io.
Result<void> watch_orphan(const Context& context, Watch watch, const record::Start& start);

/// A connection to a container's monitor, for `berth attach`.
/// Errors: not_found (it has no monitor), io.
Result<sys::Fd> connect_to_monitor(const Paths& paths, const std::string& id);

/// Tells the monitor that the user ends the container, so that it is not restarted.
Result<void> mark_stopped(const Paths& paths, const std::string& id);

/// Sets the restart policy from now on.  Errors: not_found (it has no monitor), io.
Result<void> set_restart_policy(const Paths& paths, const std::string& id,
                                const RestartPolicy& policy);

/// "on-failure:3", as in --restart.
std::string restart_text(const RestartPolicy& policy);

}  // namespace berth::engine
