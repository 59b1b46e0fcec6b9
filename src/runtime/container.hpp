// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: only the inputs that launch.hpp
// names.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/launch.hpp"
#include "runtime/state/state.hpp"

/// The operations of runtime-spec runtime.md "Operations", and those that every runtime adds.
namespace berth::runtime {

/// Makes a container that waits for start().
Result<void> create(const Store& store, LaunchRequest request, Report& report, Log& log);

/// Lets a created container run its program. Errors: usage (not created), denied and not_found (the
/// program, with Stage::command in `report`).
Result<void> start(const Store& store, const std::string& id, Report& report, Log& log);

/// create and start in one. In the foreground this call waits until the container ends, removes it
/// and returns its exit status (128 + n for signal n); detached it returns 0.
Result<int> run(const Store& store, LaunchRequest request, Detach detach, Report& report, Log& log);

/// "TERM", "SIGTERM", "15". Errors: usage.
Result<int> read_signal(std::string_view text);

enum class Whom { first_process, all };
/// Sends a signal to the container. Errors: usage ("container not running", a message that callers
/// search for).
Result<void> kill(const Store& store, const std::string& id, int signal, Whom whom);

enum class Force { no, yes };
struct RemoveOptions {
  Force force = Force::no;
  std::string oom_file = {};  ///< made if the OOM killer killed a process of the container
};
/// Removes a stopped container; with `force` kills it first. Errors: usage (not stopped, without
/// force); with force an absent container is fine.
Result<void> remove(const Store& store, const std::string& id, const RemoveOptions& options,
                    Log& log);

struct Listed {
  State state;
  Status status;
};
Result<Listed> look_up(const Store& store, const std::string& id);
/// Containers that vanish meanwhile are left out.
Result<std::vector<Listed>> list(const Store& store);

/// Freezes all processes of a container until resume(). At return either all are frozen or none is.
/// Errors: usage ("container not running", paused ones included), unsupported (it has no cgroup
/// with a freezer), interrupted (a process could not be stopped within 10 s).
Result<void> pause(const Store& store, const std::string& id);

/// Thaws the processes of a paused container. Errors: usage ("container not paused"), interrupted.
Result<void> resume(const Store& store, const std::string& id);

}  // namespace berth::runtime
