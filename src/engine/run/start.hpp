// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/container/attach.hpp"
#include "engine/container/watch.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/image/transfer.hpp"
#include "engine/request/request.hpp"
#include "engine/state/outcome.hpp"

/// Containers that outlive a command: created, started, attached to, restarted.
namespace berth::engine {

/// Creates a container for a later start, and returns its id. On failure nothing is left.
/// Errors: those of run() except for starting.
Result<std::string> create_container(const Context& context, Asked asked, const Progress& progress);

struct StartOptions {
  bool attach = false;       ///< attach until its end
  bool interactive = false;  ///< attach standard input too; implies `attach`
  bool signal_proxy = true;
  std::optional<std::string> detach_keys;  ///< as in --detach-keys; none: docker's default
};

/// Starts a stopped container, and decides again what depends on the machine: GPUs, driver files,
/// mounts. Does nothing for a running container. The outcome's status is 0 unless it attaches.
/// Errors: not_found (container, image), those of deciding and of berth-runtime.
Result<RunOutcome> start_container(const Context& context, std::string_view reference,
                                   const StartOptions& options);

/// Starts a kept, stopped container in the foreground of this process for the tasks of a step
/// (RunCall.held), with the request of resolve_again().  Errors: as start_container(), busy (it
/// runs).
Result<RunOutcome> start_held(const Context& context, std::string_view reference, Asked asked);

struct AttachRequest {
  bool input = true;  ///< if the container's standard input is open
  bool signal_proxy = true;
  std::optional<std::string> detach_keys;
};

/// Attaches to a running container until it ends or the detach keys are typed.
/// Errors: not_found, usage (not running, or paused), unsupported (it has no monitor).
Result<RunOutcome> attach_container(const Context& context, std::string_view reference,
                                    const AttachRequest& request);

/// Starts a container that was just stopped: the second half of a restart.
Result<void> start_again(const Context& context, std::string_view reference);

/// The bytes of --detach-keys; the default is Ctrl-p Ctrl-q.  Errors: usage.
Result<std::string> detach_keys_of(const std::optional<std::string>& flag);

/// How `berth run` without -d attaches to its container.
AttachOptions attach_options(const RunRequest& request, const RunCall& call,
                             const std::string& keys);

/// Our end of a connection to the monitor that `watch` will start; `watch.client` gets the other
/// end. Errors: io.
Result<sys::Fd> attach_early(Watch& watch, const AttachOptions& options);

/// Attaches to a running container through `socket`, from attach_early() or connect_to_monitor(),
/// until its end or until the detach keys are typed. Waits for the replacement of a killed monitor.
/// Errors: not_found (its exit status is lost), io.
Result<RunOutcome> stay_with(const Context& context, const std::string& id, sys::Fd socket,
                             const AttachOptions& options);

}  // namespace berth::engine
