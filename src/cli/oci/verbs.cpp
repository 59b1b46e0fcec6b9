// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <ctime>

#include "base/text.hpp"
#include "base/time.hpp"
#include "cli/oci/verb.hpp"
#include "json/value.hpp"
#include "runtime/state/find.hpp"

namespace berth::cli::oci {

const std::vector<const Verb*>& verbs() {
  static const std::vector<const Verb*> all = {
      &create_verb,     &start_verb,   &exec_verb,   &run_verb,      &state_verb,  &kill_verb,
      &delete_verb,     &list_verb,    &pause_verb,  &ps_verb,       &resume_verb, &update_verb,
      &checkpoint_verb, &restore_verb, &events_verb, &features_verb, &spec_verb,   &plan_verb};
  return all;
}

Result<const Verb*> find_verb(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Verb* verb : verbs()) {
    if (verb->text.name == name) return verb;
    names.push_back(verb->text.name);
  }
  return unknown_word("command", name, names, "berth-runtime");
}

FlagTable global_flags(Globals& g) {
  return {
      {"root", 0, "DIR", "Directory for the states of containers", &g.root},
      {"log", 0, "FILE", "Append warnings and errors to a file", &g.log_file},
      choice_flag("log-format", "FORMAT", "Output format: text or json", &g.log_format,
                  {"text", "json"}),
      {"report-fd", 0, "N", "Write an error as JSON to this file descriptor", &g.report_fd},
      {"debug", 0, "", "Show where in the source an error arose", &g.debug},
      choice_flag("cgroup-manager", "NAME", "Cgroup manager: cgroupfs, systemd or disabled",
                  &g.cgroup_manager, {"cgroupfs", "systemd", "disabled"}),
      choice_flag("rootless", "WORD", "No effect: rootless operation needs no flag", &g.rootless,
                  {"true", "false", "auto"}),
      {"config-dir", 0, "DIR", "Directory of the site's configuration (/etc/berth)", &g.config_dir},
      {"state", 0, "DIR", "Directory of Berth's records of devices (/run/berth)", &g.state_dir},
      {"decided", 0, "", "The configuration already includes devices and site rules", &g.decided},
      {"systemd-cgroup", 0, "", "Create the cgroup with systemd: cgroupsPath is slice:prefix:name",
       &g.systemd_cgroup},
      {"version", 'v', "", "Print the version", &g.version}};
}

runtime::CgroupManager cgroup_manager(const Globals& globals) {
  if (globals.systemd_cgroup || globals.cgroup_manager == "systemd") {
    return runtime::CgroupManager::systemd;
  }
  return globals.cgroup_manager == "disabled" ? runtime::CgroupManager::disabled
                                              : runtime::CgroupManager::cgroupfs;
}

FlagTable launch_flags(LaunchOptions& o) {
  return {
      {"bundle", 'b', "DIR", "Bundle directory (the working directory)", &o.request.bundle},
      file_flag("config", 'f', "Configuration file, relative to the bundle (config.json)",
                &o.request.config),
      {"pid-file", 0, "FILE", "Write the process id to a file", &o.request.pid_file},
      {"console-socket", 0, "PATH", "Send the file descriptor of the pseudo-TTY to this socket",
       &o.request.console_socket},
      {"pidfd-socket", 0, "PATH", "Send a pidfd of the first process to this socket",
       &o.request.pidfd_socket},
      {"preserve-fds", 0, "N", "Pass N more file descriptors, starting at 3", &o.preserve_fds},
      {"no-pivot", 0, "", "Use MS_MOVE and chroot instead of pivot_root", &o.request.no_pivot},
      {"no-new-keyring", 0, "", "Keep the caller's session keyring", &o.request.no_new_keyring}};
}

FlagTable criu_flags(runtime::CriuOptions& o) {
  return {{"image-path", 0, "DIR", "Directory of the checkpoint (checkpoint)", &o.image_path},
          {"work-path", 0, "DIR", "Directory for logs (the checkpoint's)", &o.work_path},
          {"tcp-established", 0, "", "Allow open TCP connections", &o.tcp_established},
          {"tcp-skip-in-flight", 0, "", "Skip TCP connections that are not yet established",
           &o.tcp_skip_in_flight},
          {"link-remap", 0, "", "Allow open files that have been deleted, by linking them again",
           &o.link_remap},
          {"ext-unix-sk", 0, "", "Allow Unix sockets connected to outside the container",
           &o.external_unix_sockets},
          {"shell-job", 0, "", "Allow processes attached to the caller's terminal", &o.shell_job},
          {"lazy-pages", 0, "", "Restore memory pages on demand", &o.lazy_pages},
          {"file-locks", 0, "", "Allow file locks", &o.file_locks},
          {"auto-dedup", 0, "", "Remove duplicate memory pages", &o.auto_dedup},
          choice_flag("manage-cgroups-mode", "MODE",
                      "How to handle cgroups: soft, full, strict or ignore", &o.manage_cgroups_mode,
                      {"soft", "full", "strict", "ignore"})};
}

Result<int> descriptor_count(std::optional<uint64_t> preserve_fds) {
  constexpr uint64_t kMost = 1'000'000;
  if (preserve_fds.value_or(0) <= kMost) return static_cast<int>(preserve_fds.value_or(0));
  return make_error(Kind::usage, "--preserve-fds: more descriptors than a process can have");
}

Result<runtime::LaunchRequest> to_request(const Session& session, const LaunchOptions& options,
                                          const std::string& id) {
  runtime::LaunchRequest request = options.request;
  request.id = id;
  request.cgroup_manager = session.cgroup_manager;
  request.preserve_fds = TRY(descriptor_count(options.preserve_fds));
  request.activation = runtime::read_activation(session.inject.caller);
  request.of_engine = session.inject.decided;
  // The lease of GPUs is held as long as the request exists: until the container runs or has
  // failed.
  auto lease = std::make_shared<std::optional<gpu::ContainerLease>>();
  request.amend = [&session, id, lease](berth::oci::Spec& spec, const std::string& bundle,
                                        const std::string& rootfs) -> Result<void> {
    *lease = TRY(gpu::inject(session.inject, {id, bundle, rootfs}, spec, session.log));
    return {};
  };
  request.placed = [lease](runtime::State& state) -> Result<void> {
    if (!*lease) return {};
    std::string cgroup = TRY(runtime::whole_cgroup_path(state));
    state.gpu_lease = TRY(gpu::set_life(**lease, state.pid, cgroup));
    return {};
  };
  return request;
}

std::string program_help() {
  std::vector<VerbText> texts;
  for (const Verb* verb : verbs()) texts.push_back(verb->text);
  Globals globals;
  return cli::program_help("berth-runtime", "Create and start containers from OCI bundles", texts,
                           global_flags(globals));
}

std::string version_text(std::string_view program) {
  std::string_view name = program.substr(program.rfind('/') + 1);
  bool known = name == "runc" || name == "crun";
  std::string text = std::string(known ? name : "berth-runtime") +
                     " version " BERTH_VERSION "\ncommit: berth-" BERTH_VERSION "\nspec: " +
                     std::string(berth::oci::kRuntimeSpecVersion) + "\n";
  if (name == "crun") text += "+SYSTEMD +SELINUX +APPARMOR +CAP +SECCOMP +EBPF +CRIU\n";
  return text;
}

std::string default_root(unsigned uid, const char* runtime_directory) {
  bool own = uid != 0 && runtime_directory != nullptr && runtime_directory[0] == '/';
  return (own ? std::string(runtime_directory) : "/run") + "/berth/runtime";
}

std::string report_warning(const std::string& text) {
  return "w" + escape_controls(text) + "\n";
}

std::string report_text(const Error& error, runtime::Stage stage) {
  json::Array context;
  for (const auto& level : error.context) context.emplace_back(level);
  json::Object object;
  object.emplace_back("kind", std::string(kind_name(error.kind)));
  object.emplace_back("errno", error.sys_errno);
  object.emplace_back("what", error.what);
  object.emplace_back("hint", error.hint);
  object.emplace_back("context", std::move(context));
  object.emplace_back("stage", stage == runtime::Stage::command ? "command" : "engine");
  return json::dump(json::Value(std::move(object)));
}

std::string caller_text(Error error) {
  if (error.sys_errno == 0) return to_line(error);
  std::string word = std::strerror(error.sys_errno);
  error.what += ": " + to_lower(word.substr(0, 1)) + word.substr(1);
  error.sys_errno = 0;
  return to_line(error);
}

std::string log_line(std::string_view format, std::string_view level, const std::string& text) {
  std::string stamp = format_time(std::time(nullptr));
  if (format != "json") return stamp + " " + std::string(level) + ": " + text + "\n";
  json::Object object;
  object.emplace_back("level", std::string(level));
  object.emplace_back("msg", text);
  object.emplace_back("time", std::move(stamp));
  return json::dump(json::Value(std::move(object))) + "\n";
}

}  // namespace berth::cli::oci
