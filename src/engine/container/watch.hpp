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
/// Made from the request; `client` and `health` are not set.
Watch watch_of(const ContainerDirectory& directory, const RunRequest& request);

/// The start of a container with a monitor. open() executes the monitor and berth-runtime, which
/// then wait: their start-up runs in parallel with our decisions.
class WatchedStart {
 public:
  /// The bundle need not exist yet. The monitor takes over the lock of the directory.
  /// Errors: io.
  static Result<WatchedStart> open(const Context& context, Watch watch);
  WatchedStart(WatchedStart&&) = default;
  WatchedStart& operator=(WatchedStart&&) = default;
  /// If go() was not called, starts nothing and leaves no process.
  ~WatchedStart();

  /// The config of the bundle is written: berth-runtime may plan the container.
  void announce() const;

  /// The bundle is complete: creates the container.
  void go() const;

  /// Call after go(). Returns when the command runs or has failed to start. If it failed, or after
  /// an error, no process of the container is left.
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

/// Starts a new berth-holder and a new berth-monitor for a running container that has lost both.
/// The container's streams ended with the old ones: further output is lost, but the container's end
/// is recorded.
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
