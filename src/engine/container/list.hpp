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

/// Which containers there are, and what they are doing.
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

/// What get_container() fails with where there is none.
Error no_such_container(std::string_view reference);

/// The id of the container that `reference` names. Errors: those of get_container().
Result<std::string> resolve_container(const Context& context, std::string_view reference);

/// What the files of container `id` say; nothing where it has gone.  Errors: io.
Result<std::optional<ContainerFiles>> find_files(const Context& context, const std::string& id);

/// The same of the container that `reference` names, recovered (sweep.hpp) where its owner was
/// killed. There is a record.  Errors: those of get_container(), corrupt.
Result<ContainerFiles> get_files(const Context& context, std::string_view reference);

ContainerState state_of(const ContainerFiles& files);

/// "cannot read container '0123456789ab'".
std::string cannot_read(const std::string& id);

/// The first process of a running container, or of the one whose namespaces a container that does
/// not run is to join, before this process has settled who it is.
std::optional<int64_t> process_of(const Paths& paths, std::string_view reference, Log& log);

/// What a container was asked to be, where that can be read; before enter_identity().
std::optional<RunRequest> request_of(const Context& context, std::string_view reference);

/// That of the running container `id`, as berth-runtime knows it.
std::optional<int64_t> first_process(const Context& context, const std::string& id);

/// What was asked of the container; nothing where no request was saved, or none that can be read,
/// which is warned of.
std::optional<RunRequest> saved_request(const Context& context, const ContainerSummary& summary);

}  // namespace berth::engine
