// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"

/// The containers, and their states.
namespace berth::engine {

enum class ContainerState {
  created,  ///< never started
  running,
  paused,
  restarting,  ///< has ended; the restart policy starts it again
  exited,
  dead,  ///< its owner was killed, or the machine rebooted; the exit status is unknown
};
/// True for containers that have processes, or will shortly.
bool is_alive(ContainerState state);
std::string_view container_state_name(ContainerState state);

/// A container as users see it.
struct ContainerSummary {
  std::string id;  ///< 64 hex digits
  std::string name;
  std::string image;                 ///< as requested
  std::string image_id;              ///< "sha256:…"
  std::vector<std::string> command;  ///< entrypoint and arguments
  ContainerState state = ContainerState::created;
  int64_t created_at = 0;  ///< seconds since 1970
  std::optional<int64_t> finished_at;
  int64_t created_ns = 0;              ///< nanoseconds since 1970
  std::optional<int64_t> started_ns;   ///< the last start
  std::optional<int64_t> finished_ns;  ///< the end after that start
  std::optional<int> exit_code;
  std::optional<int64_t> pid;  ///< of a running container, in the caller's pid namespace
  int restarts = 0;            ///< by the restart policy
  bool oom_killed = false;
  std::string error;     ///< why it failed to start
  bool remove = false;   ///< --rm
  bool watched = false;  ///< by a monitor: clients can attach
  bool terminal = false;
  bool interactive = false;
};

enum class Which { running, all };

/// Asking berth-runtime for a pid costs one program start.
enum class Pids { no, yes };
/// Newest first.  Errors: io.
Result<std::vector<ContainerSummary>> list_containers(const Context& context, Which which,
                                                      Pids pids = Pids::no);

/// By full id, unique prefix of an id, or name.
/// Errors: not_found ("no such container: X"), usage (several match).
Result<ContainerSummary> get_container(const Context& context, std::string_view reference);

/// The error of get_container() if there is no such container.
Error no_such_container(std::string_view reference);

/// The id of the container that `reference` names. Errors: those of get_container().
Result<std::string> resolve_container(const Context& context, std::string_view reference);

/// The files of container `id`; nothing if it is gone.  Errors: io.
Result<std::optional<ContainerFiles>> find_files(const Context& context, const std::string& id);

/// The same for the container that `reference` names, after a recovery (sweep.hpp) if its owner was
/// killed. The record is always set.  Errors: those of get_container(), corrupt.
Result<ContainerFiles> get_files(const Context& context, std::string_view reference);

ContainerState state_of(const ContainerFiles& files);

/// "cannot read container '0123456789ab'".
std::string cannot_read(const std::string& id);

/// The first process of a running container. For a stopped container that will share the namespaces
/// of another container: the first process of that container. Call before enter_identity().
std::optional<int64_t> process_of(const Paths& paths, std::string_view reference, Log& log);

/// The request of a container, if readable; call before enter_identity().
std::optional<RunRequest> request_of(const Context& context, std::string_view reference);

/// The first process of the running container `id`, as berth-runtime knows it.
std::optional<int64_t> first_process(const Context& context, const std::string& id);

/// The absolute directory with the container's bundle, record and request.
std::string files_of(const Context& context, const ContainerSummary& summary);

/// The request of the container; nothing if none was saved.  Errors: corrupt, io.
Result<std::optional<RunRequest>> find_request(const Context& context,
                                               const ContainerSummary& summary);

/// The same, but warns about a request that cannot be read.
std::optional<RunRequest> saved_request(const Context& context, const ContainerSummary& summary);

}  // namespace berth::engine
