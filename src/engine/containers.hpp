// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "engine/request.hpp"

namespace berth::engine {

enum class ContainerState {
  created,  ///< was never started
  running,
  paused,
  restarting,  ///< has ended, and the restart policy starts it again
  exited,
  dead,  ///< its owner was killed: the exit status is not known
};
/// True for those that have processes, or will have them in a moment.
bool is_alive(ContainerState state);
std::string_view container_state_name(ContainerState state);

/// A container as people see it.
struct ContainerSummary {
  std::string id;  ///< 64 hex digits
  std::string name;
  std::string image;                 ///< as it was asked for
  std::string image_id;              ///< "sha256:…"
  std::vector<std::string> command;  ///< entrypoint and arguments
  ContainerState state = ContainerState::created;
  int64_t created_at = 0;  ///< seconds since 1970
  std::optional<int64_t> finished_at;
  int64_t created_ns = 0;              ///< nanoseconds since 1970
  std::optional<int64_t> started_ns;   ///< the last time
  std::optional<int64_t> finished_ns;  ///< after that start
  std::optional<int> exit_code;
  std::optional<int64_t> pid;  ///< of a running container, in the caller's pid namespace
  int restarts = 0;            ///< by the restart policy
  bool oom_killed = false;
  std::string error;     ///< why it could not be started
  bool remove = false;   ///< --rm
  bool watched = false;  ///< by a monitor: it can be attached to
  bool terminal = false;
  bool interactive = false;
};

enum class Which { running, all };

/// Asking berth-runtime for a pid costs the start of a program.
enum class Pids { no, yes };
/// Newest first.  Errors: io.
Result<std::vector<ContainerSummary>> list_containers(const Context& context, Which which,
                                                      Pids pids = Pids::no);

/// By full id, unique prefix of an id, or name.
/// Errors: not_found ("no such container: X"), usage (several match).
Result<ContainerSummary> get_container(const Context& context, std::string_view reference);

// Processes of a container may have other ids than its user. From a user namespace of our own we
// could not signal them: the kernel lets their user do it from outside, as the one who made theirs.
// So removing has two steps, and a verb enters its namespace between the two.

struct EndOptions {
  bool force = false;  ///< kill it where it runs
};
/// Ends what there is of a container but its files; gives its id.
/// Errors: not_found, busy (it runs and `force` is not set).
Result<std::string> end_container(const Context& context, std::string_view reference,
                                  EndOptions options);

enum class AnonymousVolumes { keep, remove };
/// Removes the container `id` after end_container(); one that removes itself is fine.
/// Errors: busy (another process has it), io.
Result<void> remove_container(const Context& context, const std::string& id,
                              AnonymousVolumes volumes);

/// The same for a container that gives its name, all of it, to a new one: none of that name is
/// fine.
Result<void> end_replaced(const Context& context, const std::string& name);
Result<void> remove_replaced(const Context& context, const std::string& name);

/// What sweep() does (engine/sweep.hpp), for one container.  Errors: not_found, io.
Result<void> adopt_container(const Context& context, std::string_view reference);

/// The first process of a running container, or of the one whose namespaces a container that does
/// not run is to join, before this process has settled who it is.
std::optional<int64_t> process_of(const Paths& paths, std::string_view reference, Log& log);

/// What a container was asked to be, where that can be read; before settle().
std::optional<RunRequest> request_of(const Context& context, std::string_view reference);

/// That of the running container `id`, as berth-runtime knows it.
std::optional<int64_t> first_process(const Context& context, const std::string& id);

/// Sends signal `number`.  Errors: not_found, usage (it does not run).
Result<void> kill_container(const Context& context, std::string_view reference, int number);

/// The container's stop signal, and KILL after `grace` seconds (-1: never), else after those of its
/// --stop-timeout, else after ten, as docker does; a container that has ended is fine. Errors:
/// not_found.
Result<void> stop_container(const Context& context, std::string_view reference,
                            std::optional<int64_t> grace);

/// Freezes or thaws all processes of a running container.
/// Errors: not_found, usage (it does not run, it is (not) paused), unsupported (no freezer).
Result<void> pause_container(const Context& context, std::string_view reference);
Result<void> unpause_container(const Context& context, std::string_view reference);

/// Errors: not_found, exists (the name), usage (no name).
Result<void> rename_container(const Context& context, std::string_view reference,
                              std::string_view name);

/// Waits for the end and gives the exit status.  Errors: not_found, io.
Result<int> wait_container(const Context& context, std::string_view reference);

struct LogOptions {
  bool follow = false;
  std::optional<uint64_t> tail;     ///< only the last entries
  std::optional<int64_t> since_ns;  ///< since 1970; only entries that are not older
  std::optional<int64_t> until_ns;  ///< only entries that are not newer; ends `follow`
};
enum class Stream { out, error };
/// One piece of output in the order it was written.
struct LogPiece {
  Stream stream = Stream::out;
  std::string_view text;
  int64_t time_ns = 0;  ///< since 1970

  /// RFC 3339 with nine digits after the seconds.
  std::string time() const;
};
/// Calls `sink` for what the container has written; with `follow` until it ends.
/// A piece is a line, or a part of one that is longer than 16 KiB, as docker has them.
/// Errors: not_found, unsupported (it ran in the foreground, or with --log-driver none), io.
Result<void> container_logs(const Context& context, std::string_view reference,
                            const LogOptions& options,
                            const std::function<void(const LogPiece&)>& sink);

}  // namespace berth::engine
