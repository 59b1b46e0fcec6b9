// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "cli/core/flags.hpp"
#include "cli/core/help.hpp"
#include "gpu/inject/inject.hpp"
#include "runtime/checkpoint/criu.hpp"
#include "runtime/container.hpp"

/// The command line that OCI runtimes share: that of runc, which their callers expect.
namespace berth::cli::oci {

/// Flags before the verb.
struct Globals {
  std::string root;
  std::string log_file;
  std::string log_format = "text";
  std::string report_fd;
  bool debug = false;
  bool systemd_cgroup = false;
  std::string cgroup_manager = "cgroupfs";
  std::string rootless;
  std::string config_dir;
  std::string state_dir;
  bool decided = false;
  bool version = false;
};
FlagTable global_flags(Globals& globals);
/// The cgroup manager that --systemd-cgroup and --cgroup-manager select together.
runtime::CgroupManager cgroup_manager(const Globals& globals);

/// The context of a verb; main makes it.
struct Session {
  const std::string& root;
  Log& log;
  runtime::Report& report;
  runtime::CgroupManager cgroup_manager;
  gpu::InjectOptions inject;
  /// Collects standard output; main writes it when the verb has succeeded.
  std::string out;
  /// Writes to standard output at once.
  std::function<Result<void>(const std::string&)> print;
};

/// A verb ready to parse: `flags` points into options that `run` keeps alive.
struct Command {
  FlagTable flags;
  std::function<Result<int>(Session&, const Arguments&)> run;
};

struct Verb {
  VerbText text;
  Arity arity{0, 0};
  Command (*command)();
  bool makes_process = false;  ///< the verb clones a process for a container
  /// at_first_argument if the words after the id are the command line of another program.
  FlagsEnd flags_end = FlagsEnd::at_double_dash;
  int failed = 1;  ///< exit code for our own errors
};

template <class Options>
Command make_command(FlagTable (*flags)(Options&),
                     Result<int> (*run)(Session&, const Options&, const Arguments&)) {
  auto options = std::make_shared<Options>();
  return {flags(*options), [options, run](Session& session, const Arguments& arguments) {
            return run(session, *options, arguments);
          }};
}

/// The flags that create and run share, as typed.
struct LaunchOptions {
  runtime::LaunchRequest request;
  std::optional<uint64_t> preserve_fds;
};
FlagTable launch_flags(LaunchOptions& options);
/// The flags that checkpoint and restore share.
FlagTable criu_flags(runtime::CriuOptions& options);
/// Errors: usage (an impossible number of descriptors).
Result<int> descriptor_count(std::optional<uint64_t> preserve_fds);
/// Errors: as descriptor_count().
Result<runtime::LaunchRequest> to_request(const Session& session, const LaunchOptions& options,
                                          const std::string& id);

// Each verb is defined in its own file, except that pause.cpp has resume too.
extern const Verb checkpoint_verb, create_verb, delete_verb, events_verb, exec_verb, features_verb,
    kill_verb, list_verb, pause_verb, plan_verb, ps_verb, restore_verb, resume_verb, run_verb,
    spec_verb, start_verb, state_verb, update_verb;

/// All verbs, in the order of the help.
const std::vector<const Verb*>& verbs();
/// Errors: usage (an unknown verb, suggesting the nearest one).
Result<const Verb*> find_verb(const std::string& name);

std::string program_help();
/// The output of --version. It begins with the name under which the program was called, because
/// callers of runc and crun search for these names.
std::string version_text(std::string_view program);
/// $XDG_RUNTIME_DIR/berth/runtime for an ordinary user with that variable, else /run/berth/runtime.
std::string default_root(unsigned uid, const char* runtime_directory);

/// The line for a warning on --report-fd.
std::string report_warning(const std::string& text);
/// The message for a failure on --report-fd: one JSON object.
std::string report_text(const Error& error, runtime::Stage stage);
/// An error in the form of the --log file: the system's message begins in lower case, as in runc's
/// errors. containerd passes the error on, and Docker searches it for "no such file or directory"
/// (exit status 127) and "permission denied" (126), in lower case.
std::string caller_text(Error error);
/// A line of the --log file.
std::string log_line(std::string_view format, std::string_view level, const std::string& text);

}  // namespace berth::cli::oci
