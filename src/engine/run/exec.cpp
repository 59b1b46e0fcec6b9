// SPDX-License-Identifier: Apache-2.0
#include "engine/run/exec.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/list.hpp"
#include "engine/container/root_view.hpp"
#include "engine/decide/reason.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "engine/request/environment.hpp"
#include "engine/request/keep_id.hpp"
#include "engine/request/request.hpp"
#include "engine/state/journal.hpp"
#include "oci/capabilities.hpp"
#include "oci/process_changes.hpp"
#include "oci/user.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/process/process.hpp"
#include "sys/user/credentials.hpp"

namespace berth::engine {
namespace {

// Docker's statuses: for invalid flags, and for a command that cannot start.
constexpr int kRequestRefused = 125;
constexpr int kCommandRefused = 126;

constexpr size_t kMaxExecAccountFile = size_t{4} << 20;

/// The root of the running container's first process.
Result<sys::Fd> root_of(int64_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/root";
  return sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY);
}

/// Reads a file below the root of process `pid`; links cannot lead outside. Empty if the file
/// cannot be read.
Result<std::string> read_inside(int64_t pid, const std::string& path) {
  sys::Fd root = TRY(root_of(pid));
  auto text = sys::read_regular_in_root(root, path, kMaxExecAccountFile);
  return text.ok() ? std::move(*text).value_or("") : std::string();
}

/// Applies the user of -u: ids, the groups that list the user and those of --group-add, and HOME
/// unless the container was started with a HOME.
Result<void> add_user(const Context& context, const ContainerSummary& container,
                      const ExecRequest& request, oci::ProcessChanges& changes) {
  if (!request.user) return {};
  std::string passwd = TRY(read_inside(*container.pid, "/etc/passwd"));
  std::string group = TRY(read_inside(*container.pid, "/etc/group"));
  oci::ContainerUser user = TRY(oci::resolve_user(*request.user, passwd, group));
  if (context.identity != Identity::single) {
    if (!TRY(has_ids(user))) return no_such_ids(*request.user);
    TRY(leave_out_groups(context, user));
  }
  auto run = saved_request(context, container);
  for (const std::string& wish :
       run && !keeps_groups(*run) ? run->group_add : std::vector<std::string>()) {
    // The container may have changed the file since; that must not prevent an exec.
    auto added = oci::add_groups({wish}, group, user);
    if (!added.ok()) context.log.warn("--group-add: " + to_line(added.error()) + ", ignoring");
  }
  changes.uid = user.uid;
  changes.gid = user.gid;
  // A user namespace with one id does not permit setgroups.
  if (context.identity != Identity::single) changes.additional_gids = user.additional_gids;
  if (!run || !names_home(run->environment)) changes.env.push_back("HOME=" + user.home);
  return {};
}

Result<void> add_environment(const Context& context, const ExecRequest& request,
                             oci::ProcessChanges& changes) {
  if (request.terminal) changes.env.emplace_back("TERM=xterm");
  for (const std::string& entry : request.environment) {
    std::string_view name = variable_name(entry);
    if (name.empty()) {
      return make_error(Kind::usage, "invalid environment variable: " + quote(entry));
    }
    bool bare = name.size() == entry.size();
    auto value = bare ? context.environment.get(name) : std::nullopt;
    // A bare name without a value removes the variable.
    changes.env.push_back(value ? entry + "=" + std::string(*value) : entry);
  }
  return {};
}

/// Whether the container has the same directory at this path.
bool is_seen_inside(int64_t pid, const std::string& directory) {
  auto here = sys::stat_entry(sys::cwd(), directory);
  auto root = root_of(pid);
  if (!here.ok() || !*here || !root.ok()) return false;
  auto opened = sys::open_in_root(*root, directory, O_PATH | O_DIRECTORY);
  if (!opened.ok()) return false;
  auto there = sys::stat_fd(*opened, directory);
  return there.ok() && there->st_dev == (*here)->st_dev && there->st_ino == (*here)->st_ino;
}

/// The launcher's PMIx stores data for all ranks of a node in files of a directory. A container
/// that is older than the launcher may lack this directory, and its ranks would abort. This
/// variable makes them request the data by messages. Source: OpenPMIx 4 to 6, src/mca/gds: each of
/// these versions has "hash".
void add_pmix_store(const ContainerSummary& container, const ExecRequest& request,
                    oci::ProcessChanges& changes) {
  const Environment asked(request.environment);
  auto directory = asked.get_filled("PMIX_SERVER_TMPDIR");
  if (!directory || asked.get("PMIX_MCA_gds")) return;
  if (is_seen_inside(*container.pid, std::string(*directory))) return;
  changes.env.emplace_back("PMIX_MCA_gds=hash");
}

Result<void> add_rights(const ContainerSummary& container, const oci::Spec& spec,
                        const ExecRequest& request, oci::ProcessChanges& changes) {
  if (!request.privileged) return {};
  if (spec.root.readonly && rootfs_driver_of(spec) == RootfsDriver::copy) {
    // A process with the privilege to mount could write to the image's files.
    return make_error(Kind::denied,
                      "--privileged: the files of container " + container.name +
                          " may be those of the image itself (--read-only, root by copy)",
                      "a container without --read-only");
  }
  sys::CapabilitySets held = TRY(sys::capabilities());
  for (std::string_view name : oci::capability_names()) {
    auto number = oci::capability_number(name);
    if (number && (held.permitted >> *number & 1) != 0) {
      changes.capabilities.emplace_back(name);
    }
  }
  return {};
}

Result<void> check_command(const ExecRequest& request) {
  std::string directory = request.workdir.value_or("");
  if (!directory.empty() && directory[0] != '/') {
    return make_error(Kind::usage, "working directory " + quote(directory) + ": not absolute",
                      "berth exec -w /" + escape_controls(directory));
  }
  if (!request.command.empty() && request.command[0].empty()) {
    return make_error(Kind::usage, "the command is an empty string");
  }
  return {};
}

Result<ContainerSummary> get_running(const Context& context, std::string_view reference) {
  ContainerSummary summary = TRY(get_container(context, reference));
  if (summary.state == ContainerState::paused) {
    return make_error(Kind::usage,
                      "Container " + summary.name + " is paused, unpause the container before exec",
                      "berth unpause " + summary.name);
  }
  if (summary.state != ContainerState::running || !summary.pid) {
    return make_error(Kind::usage, "Container " + summary.name + " is not running",
                      "berth start " + summary.name);
  }
  return summary;
}

/// The events of one exec, as docker names them.
class ExecEvents {
 public:
  ExecEvents(const Context& context, const std::string& id, const ExecRequest& request)
      : context_(context), id_(id), words_(": " + join(request.command, " ")) {}

  void started() const {
    emit_container_event(context_.paths, id_, "exec_create" + words_, {{"execID", exec_}});
    emit_container_event(context_.paths, id_, "exec_start" + words_, {{"execID", exec_}});
  }
  void ended(int status) const {
    emit_container_event(context_.paths, id_, "exec_die",
                         {{"execID", exec_}, {"exitCode", std::to_string(status)}});
  }

 private:
  const Context& context_;
  const std::string& id_;
  std::string exec_ = sys::random_hex(32);
  std::string words_;
};

Result<RunOutcome> run_behind(const Context& context, const ContainerSummary& container,
                              const oci::Process& process) {
  sys::Fd document = TRY(process_document(process));
  std::string report = TRY(call_reporting(
      context, {"exec", "--detach", "--process", sys::fd_path(document), container.id}, document));
  if (report.empty()) return RunOutcome{container.id, 0, std::nullopt, std::nullopt};
  Ended ended = TRY(ended_with(report, container.id, container.name));
  return RunOutcome{container.id, ended.status, std::move(ended.command_error), std::nullopt};
}

}  // namespace

Result<RunOutcome> exec(const Context& context, std::string_view reference,
                        const ExecRequest& request) {
  ContainerSummary container = TRY(get_running(context, reference));
  auto refused = [&](int status, Error error) {
    return RunOutcome{container.id, status, std::move(error), std::nullopt};
  };
  oci::ProcessChanges changes;
  changes.args = request.command;
  if (auto made = add_user(context, container, request, changes); !made.ok()) {
    return refused(kCommandRefused, std::move(made.error()));
  }
  if (auto made = add_environment(context, request, changes); !made.ok()) {
    return refused(kRequestRefused, std::move(made.error()));
  }
  add_pmix_store(container, request, changes);
  if (auto made = check_command(request); !made.ok()) {
    return refused(kCommandRefused, std::move(made.error()));
  }
  const oci::Spec spec = TRY(read_config(context, container));
  TRY(add_rights(container, spec, request, changes));
  if (!request.workdir.value_or("").empty()) changes.cwd = request.workdir;
  if (request.terminal && request.detach) {
    context.log.warn("-t: a command in the background has no terminal, ignoring");
  }
  changes.terminal = request.terminal && !request.detach;
  const oci::Process process = oci::with_changes(spec.process.value_or(oci::Process()), changes);
  ExecEvents events(context, container.id, request);
  if (request.detach) {
    RunOutcome outcome = TRY(run_behind(context, container, process));
    if (!outcome.command_error) events.started();
    return outcome;
  }
  Foreground front = TRY(
      Foreground::open_exec(context, container.id, process,
                            {request.interactive, request.terminal, container.name, request.held}));
  if (TRY(front.start())) events.started();
  Ended ended = TRY(front.end());
  if (!ended.command_error) events.ended(ended.status);
  RunOutcome outcome{container.id, ended.status, std::move(ended.command_error),
                     std::move(ended.stream_error)};
  auto root = outcome.command_error ? root_of(*container.pid) : sys::Fd();
  if (root.ok() && *root) outcome.reason = reason_in_root(*outcome.command_error, *root);
  return outcome;
}

}  // namespace berth::engine
