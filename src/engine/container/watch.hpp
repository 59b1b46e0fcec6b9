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

/// How a container's monitor is to be started.
struct Watch {
  const ContainerDirectory& directory;  ///< its lock goes over to the monitor
  bool terminal = false;
  bool interactive = false;
  bool remove = false;  ///< --rm
  RestartPolicy restart = {};
  std::string label = {};  ///< what errors call the container instead of its id
  sys::Fd client = {};     ///< of a connection to a client that attaches at once; may be empty
  LogSettings log = {};
  std::optional<oci::Healthcheck> health = {};  ///< of health_check()
};
/// As it was asked for, but `client`.
Watch watch_of(const ContainerDirectory& directory, const RunRequest& request);

/// A container that is being started with a monitor. Monitor and berth-runtime are executed first
/// and wait, because that takes as long as deciding what they are to do.
class WatchedStart {
 public:
  /// The bundle need not be there yet. The monitor takes over the lock of the directory.
  /// Errors: io.
  static Result<WatchedStart> open(const Context& context, Watch watch);
  WatchedStart(WatchedStart&&) = default;
  WatchedStart& operator=(WatchedStart&&) = default;
  /// Without go() nothing is started, and no process is left.
  ~WatchedStart();

  /// The config of the bundle is written: berth-runtime decides what is to be done.
  void announce() const;

  /// Everything is written: the container is made.
  void go() const;

  /// After go(). Returns when the command runs, or could not be started. In the second case, and
  /// after an error, no process of it is left.
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
/// ended with the old ones: what it writes is lost, but its end is seen.
/// Errors: io.
Result<void> watch_orphan(const Context& context, Watch watch, const record::Start& start);

/// A connection to the monitor of a container, as `berth attach` needs it.
/// Errors: not_found (it has no monitor), io.
Result<sys::Fd> connect_to_monitor(const Paths& paths, const std::string& id);

/// Tells the monitor that a person ends the container, so that it is not started again.
Result<void> mark_stopped(const Paths& paths, const std::string& id);

/// The restart policy that holds from now on.  Errors: not_found (it has no monitor), io.
Result<void> set_restart_policy(const Paths& paths, const std::string& id,
                                const RestartPolicy& policy);

/// "on-failure:3", as --restart has it.
std::string restart_text(const RestartPolicy& policy);

}  // namespace berth::engine
