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
#include "engine/decide/asked.hpp"
#include "engine/image/transfer.hpp"
#include "engine/request/request.hpp"
#include "engine/state/outcome.hpp"

/// Containers that outlive a command: made, started, looked at, started again.
namespace berth::engine {

/// Makes a container that waits for its first start, and gives its id. On failure nothing is left.
/// Errors: those of run() but for starting.
Result<std::string> create_container(const Context& context, Asked asked, const Progress& progress);

struct StartOptions {
  bool attach = false;       ///< stay with it to its end
  bool interactive = false;  ///< with its standard input; it also attaches
  bool signal_proxy = true;
  std::optional<std::string> detach_keys;  ///< as --detach-keys has them; none: docker's
};

/// Starts a container that does not run, deciding again what needs the machine: GPUs, driver files,
/// mounts. One that runs is fine. The outcome's status is 0 unless it attaches.
/// Errors: not_found (container, image), those of deciding and of berth-runtime.
Result<RunOutcome> start_container(const Context& context, std::string_view reference,
                                   const StartOptions& options);

/// Starts a container that stays, and does not run, in front of this process for the tasks of a
/// step (RunCall.held), as resolve_again() has it.  Errors: as start_container(), busy (it runs).
Result<RunOutcome> start_held(const Context& context, std::string_view reference, Asked asked);

struct AttachRequest {
  bool input = true;  ///< where the container's standard input is open
  bool signal_proxy = true;
  std::optional<std::string> detach_keys;
};

/// Stays with a running container until it ends or the detach keys are typed.
/// Errors: not_found, usage (it does not run, it is paused), unsupported (it has no monitor).
Result<RunOutcome> attach_container(const Context& context, std::string_view reference,
                                    const AttachRequest& request);

/// Starts a container that was stopped for it: the second half of a restart.
Result<void> start_again(const Context& context, std::string_view reference);

/// The bytes of --detach-keys; without one Ctrl-p Ctrl-q.  Errors: usage.
Result<std::string> detach_keys_of(const std::optional<std::string>& flag);

/// How `berth run` without -d looks at its container.
AttachOptions attach_options(const RunRequest& request, const RunCall& call,
                             const std::string& keys);

/// Our end of a connection to a monitor that is still to be started.  Errors: io.
Result<sys::Fd> attach_early(Watch& watch, const AttachOptions& options);

/// Stays with a running container, with us at `socket`, of attach_early() or connect_to_monitor(),
/// to its end or until the detach keys are typed. A monitor that was killed is waited for.
/// Errors: not_found (its exit status is lost), io.
Result<RunOutcome> stay_with(const Context& context, const std::string& id, sys::Fd socket,
                             const AttachOptions& options);

}  // namespace berth::engine
