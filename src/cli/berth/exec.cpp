// SPDX-License-Identifier: Apache-2.0
#include "engine/exec.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere_arguments.hpp"
#include "engine/env_file.hpp"

namespace berth::cli {
namespace {

struct ExecOptions {
  engine::ExecRequest request;
  std::vector<std::string> env_files;
};

FlagTable exec_flags(ExecOptions& o) {
  engine::ExecRequest& r = o.request;
  return {
      {"detach", 'd', "", "Run it in the background", &r.detach},
      {"env", 'e', "NAME[=VALUE]", "Set an environment variable, or pass the caller's",
       &r.environment},
      {"env-file",
       0,
       "FILE",
       "Read environment variables from FILE",
       &o.env_files,
       {},
       Complete::file},
      {"interactive", 'i', "", "Keep stdin open", &r.interactive},
      {"privileged", 0, "", "Give it every capability that the caller has", &r.privileged},
      {"tty", 't', "", "Give it a terminal", &r.terminal},
      {"user", 'u', "USER[:GROUP]", "Run it as this user", &r.user},
      {"workdir", 'w', "DIR", "Start it in DIR", &r.workdir},
  };
}

constexpr std::string_view kForNew = "exec is for a container that runs";
constexpr Elsewhere kExecElsewhere[] = {
    {"B", "berth run --rm -v SOURCE:DESTINATION IMAGE COMMAND", kForNew},
    {"bind", "berth run --rm -v SOURCE:DESTINATION IMAGE COMMAND", kForNew},
    {"cleanenv", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"containall", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"detach-keys", "-d, which starts a command that nobody watches",
     "nobody keeps a command of exec once its caller has left"},
    {"fakeroot", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"home", "berth run --rm -v DIR:/root IMAGE COMMAND", kForNew},
    {"nv", "berth run --rm --gpus all IMAGE COMMAND", kForNew},
    {"pwd", "berth exec -w DIR"},
    {"rocm", "berth run --rm --gpus all,driver=amd IMAGE COMMAND", kForNew},
};

/// The image that people of apptainer name in the place of a container.
bool is_image_name(std::string_view name) {
  return name.starts_with("docker://") || name.starts_with("oras://") || is_image_file_name(name);
}

Result<void> check_container_name(std::string_view name) {
  constexpr std::string_view kInstance = "instance://";
  if (name.starts_with(kInstance)) {
    return make_error(Kind::usage, quote(name) + " is apptainer's name of a container",
                      "berth exec " + escape_controls(name.substr(kInstance.size())) + " COMMAND");
  }
  if (!is_image_name(name)) return {};
  return make_error(Kind::usage, quote(name) + " is an image: " + std::string(kForNew),
                    "berth run --rm IMAGE COMMAND");
}

Result<int> run_exec(Session& session, const ExecOptions& o, std::vector<std::string> arguments) {
  TRY(check_container_name(arguments[0]));
  engine::ExecRequest request = o.request;
  request.environment.clear();
  for (const std::string& file : o.env_files) {
    for (std::string& entry : TRY(engine::read_env_file(file))) {
      request.environment.push_back(std::move(entry));
    }
  }
  request.environment.insert(request.environment.end(), o.request.environment.begin(),
                             o.request.environment.end());
  request.command.assign(arguments.begin() + 1, arguments.end());
  if (request.terminal && request.interactive && !request.detach &&
      !session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "the input device is not a TTY", "berth exec -i, without -t");
  }
  engine::RunOutcome outcome = TRY(engine::exec(session.context, arguments[0], request));
  if (outcome.command_error) session.report.error(*outcome.command_error);
  if (outcome.stream_error) session.report.error(*outcome.stream_error);
  tell_reason(session, outcome);
  return outcome.stream_error && outcome.status == 0 ? 1 : outcome.status;
}

}  // namespace

extern const Verb exec_verb;
const Verb exec_verb{
    .text = {.name = "exec",
             .arguments = "CONTAINER COMMAND [ARG...]",
             .summary = "Run one more command in a running container",
             .example = "berth exec -it web sh",
             .complete = Complete::running},
    .arity = {2},
    .needs = engine::Needs::container,
    .flags_end = FlagsEnd::at_first_argument,
    .elsewhere = kExecElsewhere,
    .command = [] { return make_command(exec_flags, run_exec); },
};

}  // namespace berth::cli
