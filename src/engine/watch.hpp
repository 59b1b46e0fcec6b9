// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/container_directory.hpp"
#include "engine/context.hpp"
#include "engine/launch.hpp"
#include "engine/request.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd.hpp"

namespace berth::engine {

/// How a container's monitor is to be started.
struct Watch {
  const ContainerDirectory& directory;  ///< its lock goes over to the monitor
  const ContainerRecord& record;
  RestartPolicy restart = {};
  std::string label = {};  ///< what errors call the container instead of its id
  sys::Fd client = {};     ///< of a connection to who is attached from the beginning; may be empty
  LogSettings log = {};
  std::optional<oci::Healthcheck> health = {};  ///< of health_check()
};

/// Starts the container, whose bundle is written, with a monitor that takes over the lock. Returns
/// when the command runs, or could not be started. In the second case, and after an error, no
/// process of it is left.
/// Errors: those of berth-runtime, io, bug.
Result<std::optional<Ended>> start_watched(const Context& context, Watch watch);

/// Gives a running container that has lost berth-holder and berth-monitor new ones. Its streams
/// ended with the old ones: what it writes is lost, but its end is seen.
/// Errors: io.
Result<void> watch_orphan(const Context& context, Watch watch, const StartRecord& start);

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
