// SPDX-License-Identifier: Apache-2.0
#include "engine/run/exec.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "engine/request/environment.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

struct ExecOptions {
  engine::ExecRequest request;
  std::vector<std::string> env_files;
};

FlagTable exec_flags(ExecOptions& o) {
  engine::ExecRequest& r = o.request;
  return {
      {"detach", 'd', "", "Run the command in the background", &r.detach},
      {"env", 'e', "NAME[=VALUE]", "Set a variable; NAME alone copies the caller's value",
       &r.environment},
      file_flag("env-file", 0, "Read environment variables from FILE", &o.env_files),
      {"interactive", 'i', "", "Keep stdin open", &r.interactive},
      {"privileged", 0, "", "Give the command all capabilities of the caller", &r.privileged},
      {"tty", 't', "", "Allocate a pseudo-TTY", &r.terminal},
      {"user", 'u', "USER[:GROUP]", "Run as this user", &r.user},
      {"workdir", 'w', "DIR", "Set the working directory", &r.workdir},
  };
}

constexpr std::string_view kForNew = "exec needs a running container";
constexpr Elsewhere kExecElsewhere[] = {
    {"B", "berth run --rm -v SOURCE:DESTINATION IMAGE COMMAND", kForNew},
    {"C", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"H", "berth run --rm -v DIR:/root IMAGE COMMAND", kForNew},
    {"S", "berth run --rm --tmpfs DIR IMAGE COMMAND", kForNew},
    {"W", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"add-caps", "berth run --rm --cap-add CAPABILITY IMAGE COMMAND", kForNew},
    {"allow-setuid", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"app", "berth run --rm IMAGE COMMAND", kForNew},
    {"apply-cgroups", "berth run --rm --memory BYTES IMAGE COMMAND", kForNew},
    {"bind", "berth run --rm -v SOURCE:DESTINATION IMAGE COMMAND", kForNew},
    {"c", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"cap-add", "berth run --rm --cap-add CAPABILITY IMAGE COMMAND", kForNew},
    {"cap-drop", "berth run --rm --cap-drop CAPABILITY IMAGE COMMAND", kForNew},
    {"cleanenv", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"compat", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"contain", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"containall", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"cpus", "berth run --rm --cpus NUMBER IMAGE COMMAND", kForNew},
    {"cwd", "berth exec -w DIR"},
    {"detach-keys", "-d, which starts a command in the background",
     "a command of exec ends when its caller detaches"},
    {"device", "berth run --rm --device DEVICE IMAGE COMMAND", kForNew},
    {"dns", "berth run --rm --dns ADDRESS IMAGE COMMAND", kForNew},
    {"drop-caps", "berth run --rm --cap-drop CAPABILITY IMAGE COMMAND", kForNew},
    {"entrypoint", "berth run --rm --entrypoint COMMAND IMAGE COMMAND", kForNew},
    {"f", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"fakeroot", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"fusemount", "berth run --rm -v DIR:DESTINATION IMAGE COMMAND", kForNew},
    {"gpus", "berth run --rm --gpus all IMAGE COMMAND", kForNew},
    {"group-add", "-u USER:GROUP"},
    {"home", "berth run --rm -v DIR:/root IMAGE COMMAND", kForNew},
    {"hostname", "berth run --rm --hostname NAME IMAGE COMMAND", kForNew},
    {"ipc", "berth run --rm --ipc MODE IMAGE COMMAND", kForNew},
    {"keep-privs", "berth run --rm --privileged IMAGE COMMAND", kForNew},
    {"l", "berth exec $(berth ps -lq) COMMAND"},
    {"latest", "berth exec $(berth ps -lq) COMMAND"},
    {"m", "berth run --rm --memory BYTES IMAGE COMMAND", kForNew},
    {"memory", "berth run --rm --memory BYTES IMAGE COMMAND", kForNew},
    {"mount", "berth run --rm --mount OPTIONS IMAGE COMMAND", kForNew},
    {"name", "berth run --rm --name NAME IMAGE COMMAND", kForNew},
    {"net", "berth run --rm --network MODE IMAGE COMMAND", kForNew},
    {"network", "berth run --rm --network MODE IMAGE COMMAND", kForNew},
    {"network-args", "berth run --rm -p PORT:PORT IMAGE COMMAND", kForNew},
    {"no-eval", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"no-home", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"no-init", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"no-mount", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"no-privs", "berth run --rm --cap-drop ALL IMAGE COMMAND", kForNew},
    {"no-session", "leave it out", "Berth does not do this anyway"},
    {"no-umask", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"nv", "berth run --rm --gpus all IMAGE COMMAND", kForNew},
    {"nvccli", "berth run --rm --gpus all IMAGE COMMAND", kForNew},
    {"o", "berth run --name NAME IMAGE COMMAND, without --rm", kForNew},
    {"overlay", "berth run --name NAME IMAGE COMMAND, without --rm", kForNew},
    {"p", "berth run --rm -p PORT:PORT IMAGE COMMAND", kForNew},
    {"pid", "berth run --rm --pid MODE IMAGE COMMAND", kForNew},
    {"preserve-fd", "-i for standard input", "descriptors of the caller are closed"},
    {"preserve-fds", "-i for standard input", "descriptors of the caller are closed"},
    {"publish", "berth run --rm -p PORT:PORT IMAGE COMMAND", kForNew},
    {"pwd", "berth exec -w DIR"},
    {"rm", "berth run --rm IMAGE COMMAND", kForNew},
    {"rocm", "berth run --rm --gpus all,driver=amd IMAGE COMMAND", kForNew},
    {"scratch", "berth run --rm --tmpfs DIR IMAGE COMMAND", kForNew},
    {"security", "berth run --rm --security-opt OPTION IMAGE COMMAND", kForNew},
    {"security-opt", "berth run --rm --security-opt OPTION IMAGE COMMAND", kForNew},
    {"shm-size", "berth run --rm --shm-size BYTES IMAGE COMMAND", kForNew},
    {"tmpfs", "berth run --rm --tmpfs DIR IMAGE COMMAND", kForNew},
    {"ulimit", "berth run --rm --ulimit TYPE=SOFT IMAGE COMMAND", kForNew},
    {"underlay", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"unsquash", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"userns", "berth run --rm --userns keep-id IMAGE COMMAND", kForNew},
    {"uts", "berth run --rm --uts MODE IMAGE COMMAND", kForNew},
    {"v", "berth run --rm -v SOURCE:DESTINATION IMAGE COMMAND", kForNew},
    {"volume", "berth run --rm -v SOURCE:DESTINATION IMAGE COMMAND", kForNew},
    {"writable", "berth run --rm IMAGE COMMAND, without it", kForNew},
    {"writable-tmpfs", "berth run --rm IMAGE COMMAND, without it", kForNew},
};

/// Whether `name` is the name of an image, which users of apptainer type instead of a container.
bool is_image_name(std::string_view name) {
  return name.starts_with("docker://") || name.starts_with("oras://") || is_image_file_name(name);
}

Result<void> check_container_name(std::string_view name) {
  constexpr std::string_view kInstance = "instance://";
  if (name.starts_with(kInstance)) {
    return make_error(Kind::usage, quote(name) + " is the name of a container in Apptainer",
                      "berth exec " + escape_controls(name.substr(kInstance.size())) + " COMMAND");
  }
  if (!is_image_name(name)) return {};
  return make_error(Kind::usage, quote(name) + " is an image: " + std::string(kForNew),
                    "berth run --rm IMAGE COMMAND");
}

Result<int> run_exec(Session& session, const ExecOptions& o, Arguments arguments) {
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
  print_reason(session, outcome);
  return outcome.stream_error && outcome.status == 0 ? 1 : outcome.status;
}

}  // namespace

const Verb exec_verb{
    .text = {.name = "exec",
             .arguments = "CONTAINER COMMAND [ARG...]",
             .summary = "Run a command in a running container",
             .example = "berth exec -it web sh",
             .complete = Complete::running},
    .arity = {2},
    .needs = engine::Needs::container,
    .flags_end = FlagsEnd::at_first_argument,
    .elsewhere = kExecElsewhere,
    .command = [] { return make_command(exec_flags, run_exec); },
};

}  // namespace berth::cli
