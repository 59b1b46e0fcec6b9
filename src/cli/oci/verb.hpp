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
#include "runtime/container.hpp"
#include "runtime/criu.hpp"

/// The command line that every OCI runtime has (runc's, which callers write against).
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
/// What --systemd-cgroup and --cgroup-manager say together.
runtime::CgroupManager cgroup_manager(const Globals& globals);

/// What a verb works with; main makes it.
struct Session {
  const std::string& root;
  Log& log;
  runtime::Report& report;
  runtime::CgroupManager cgroup_manager;
  gpu::InjectOptions inject;
  /// Collects what goes to standard output; main writes it when the verb has ended well.
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
  bool makes_process = false;  ///< it clones a process of a container
  /// Where what follows the id are the words of another program: at_first_argument.
  FlagsEnd flags_end = FlagsEnd::at_double_dash;
  int failed = 1;  ///< the exit code of an error of ours
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
/// Errors: usage (a number of descriptors that no process has).
Result<int> descriptor_count(std::optional<uint64_t> preserve_fds);
/// Errors: as descriptor_count().
Result<runtime::LaunchRequest> to_request(const Session& session, const LaunchOptions& options,
                                          const std::string& id);

// Each in a file of its own.
extern const Verb checkpoint_verb, create_verb, delete_verb, events_verb, exec_verb, features_verb,
    kill_verb, list_verb, pause_verb, plan_verb, ps_verb, restore_verb, resume_verb, run_verb,
    spec_verb, start_verb, state_verb, update_verb;

/// All verbs, in the order of the help.
const std::vector<const Verb*>& verbs();
/// Errors: usage (unknown, with the nearest).
Result<const Verb*> find_verb(const std::string& name);

std::string program_help();
/// What --version prints: the words of the program that it was called as, because callers of runc
/// and crun look for their names.
std::string version_text(std::string_view program);
/// $XDG_RUNTIME_DIR/berth/runtime for an ordinary user who has one, else /run/berth/runtime.
std::string default_root(unsigned uid, const char* runtime_directory);

/// What goes down --report-fd before anything else: a line for each warning.
std::string report_warning(const std::string& text);
/// What goes there when something failed: one JSON object.
std::string report_text(const Error& error, runtime::Stage stage);
/// An error as the --log file has it: the system's word begins in lower case, as that of runc does.
/// containerd hands it on, and Docker makes status 127 of "no such file or directory" and 126 of
/// "permission denied", with no capital.
std::string caller_text(Error error);
/// A line of the --log file.
std::string log_line(std::string_view format, std::string_view level, const std::string& text);

}  // namespace berth::cli::oci
