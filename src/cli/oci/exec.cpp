// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec.hpp"

#include "base/text.hpp"
#include "cli/oci/verb.hpp"
#include "oci/capabilities.hpp"

namespace berth::cli::oci {
namespace {

constexpr int kInfrastructureFailed = 255;
constexpr uint64_t kMaxId = UINT32_MAX - 1;  // UINT32_MAX means "no change" to the kernel

struct ExecOptions {
  runtime::ExecRequest request;
  std::optional<uint64_t> preserve_fds;
  bool detach = false;
};

Result<uint32_t> read_id(std::string_view text) {
  // The text has to be a number as a whole: a truncated number would be another user
  // (CVE-2026-30892).
  auto number = parse_u64(text);
  if (number && *number <= kMaxId) return static_cast<uint32_t>(*number);
  return make_error(Kind::usage, "expected a number up to 4294967294");
}

ReadValue read_user(berth::oci::ProcessChanges& changes) {
  return [&changes](std::string_view text) -> Result<void> {
    size_t colon = text.find(':');
    changes.uid = TRY(read_id(text.substr(0, colon)));
    if (colon != std::string_view::npos) changes.gid = TRY(read_id(text.substr(colon + 1)));
    return {};
  };
}

ReadValue add_group(berth::oci::ProcessChanges& changes) {
  return [&changes](std::string_view text) -> Result<void> {
    changes.additional_gids.push_back(TRY(read_id(text)));
    return {};
  };
}

ReadValue add_capability(berth::oci::ProcessChanges& changes) {
  return [&changes](std::string_view text) -> Result<void> {
    std::vector<std::string> unknown;
    berth::oci::capability_bits({std::string(text)}, unknown);
    if (!unknown.empty()) {
      return make_error(Kind::usage, "unknown capability " + quote(text), "man 7 capabilities");
    }
    changes.capabilities.emplace_back(text);
    return {};
  };
}

FlagTable exec_flags(ExecOptions& o) {
  runtime::ExecRequest& r = o.request;
  berth::oci::ProcessChanges& c = r.changes;
  return {
      file_flag("process", 'p', "Read the process from this JSON file", &r.process_file),
      {"detach", 'd', "", "Do not wait for the process", &o.detach},
      {"tty", 't', "", "Allocate a pseudo-TTY", &c.terminal},
      {"user", 'u', "UID[:GID]", "Run as this user, by UID and GID", read_user(c)},
      {"additional-gids", 'g', "GID", "Add a supplementary group", add_group(c)},
      {"env", 'e', "K[=V]", "Set an environment variable; K alone unsets it", &c.env},
      {"cwd", 0, "DIR", "Working directory", &c.cwd},
      {"cap", 'c', "NAME", "Add a capability", add_capability(c)},
      {"no-new-privs", 0, "", "Set no_new_privs", &c.no_new_privileges},
      {"process-label", 0, "LABEL", "SELinux label", &c.selinux_label},
      {"apparmor", 0, "PROFILE", "AppArmor profile", &c.apparmor_profile},
      {"cgroup", 0, "[CONTROLLER:]PATH", "Cgroup for the process, relative to the container's",
       &r.cgroup},
      {"console-socket", 0, "PATH", "Send the file descriptor of the pseudo-TTY to this socket",
       &r.console_socket},
      {"pidfd-socket", 0, "PATH", "Send a pidfd of the process to this socket", &r.pidfd_socket},
      {"pid-file", 0, "FILE", "Write the process id to a file", &r.pid_file},
      {"preserve-fds", 0, "N", "Pass N more file descriptors, starting at 3", &o.preserve_fds},
      {"rights-fd", 0, "N", "Write the rights of its processes to the memfd N, and seal it",
       &r.rights_fd},
      {"charge-container", 0, "", "Charge berth-runtime's own use to the container's cgroup",
       &r.charge_container},
      {"ignore-paused", 0, "", "Run even if the container is paused", &r.ignore_paused}};
}

Result<int> run_exec(Session& session, const ExecOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  runtime::ExecRequest request = options.request;
  request.id = arguments[0];
  request.changes.args.assign(arguments.begin() + 1, arguments.end());
  request.preserve_fds = TRY(descriptor_count(options.preserve_fds));
  request.activation = runtime::read_activation(session.inject.caller);
  auto detach = options.detach ? runtime::Detach::yes : runtime::Detach::no;
  return TRY_CTX(runtime::exec(store, request, detach, session.report, session.log),
                 "cannot exec in container '" + arguments[0] + "'");
}

}  // namespace

const Verb exec_verb{
    .text = {.name = "exec",
             .arguments = "ID [COMMAND [ARG...]]",
             .summary = "Run a process in a running container",
             .example = "berth-runtime exec -t web /bin/sh"},
    .arity = {1, SIZE_MAX},
    .command = [] { return make_command(exec_flags, run_exec); },
    .makes_process = true,
    .flags_end = FlagsEnd::at_first_argument,
    .failed = kInfrastructureFailed,
};

}  // namespace berth::cli::oci
