// SPDX-License-Identifier: Apache-2.0
#include "engine/run.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/dry_run.hpp"
#include "cli/berth/explain_run.hpp"
#include "engine/env_file.hpp"

namespace berth::cli {
namespace {

struct Options {
  engine::RunRequest request;
  std::vector<std::string> environment;
  std::vector<std::string> env_files;
  std::vector<std::string> volumes;
  std::vector<std::string> tmpfs;
  std::string network = "none";
  std::string pull = "missing";
  std::optional<std::string> cpus;
  std::string gpu_driver;
  bool immutable = false;
  bool dry_run = false;
  bool explain = false;
  std::string format = "text";
};

FlagTable flags(Options& o) {
  engine::RunRequest& r = o.request;
  ReadValue read_signal = [&r](std::string_view text) -> Result<void> {
    r.stop_signal = TRY(engine::parse_signal(text));
    return {};
  };
  FlagTable table{
      {"interactive", 'i', "", "Keep stdin open", &r.interactive},
      {"tty", 't', "", "Give the command a terminal", &r.terminal},
      {"detach", 'd', "", "Run in the background and print the container's id", &r.detach},
      {"rm", 0, "", "Remove the container when it ends", &r.remove},
      {"name", 0, "NAME", "Name the container", &r.name},
      {"env", 'e', "NAME[=VALUE]", "Set an environment variable, or pass the caller's",
       &o.environment},
      {"env-file",
       0,
       "FILE",
       "Read environment variables from FILE",
       &o.env_files,
       {},
       Complete::file},
      {"volume",
       'v',
       "SOURCE:TARGET[:ro]",
       "Bind a file or directory of the host",
       &o.volumes,
       {},
       Complete::file},
      {"tmpfs", 0, "TARGET[:OPTIONS]", "Mount an empty file system in memory", &o.tmpfs},
      {"workdir", 'w', "DIR", "Start in DIR", &r.workdir},
      {"user", 'u', "USER[:GROUP]", "Run as this user", &r.user},
      {"entrypoint", 0, "COMMAND", "Replace the image's entrypoint; '' clears it", &r.entrypoint},
      {"network",
       0,
       "MODE",
       "none: loopback alone; host: the host's network",
       &o.network,
       {"none", "host"}},
      {"net", 0, "MODE", "The same as --network", &o.network, {"none", "host"}},
      {"hostname", 'h', "NAME", "The container's host name", &r.hostname},
      {"read-only", 0, "", "Make the root file system read-only", &r.read_only},
      {"shm-size", 0, "BYTES", "The size of /dev/shm (64m)", read_bytes(r.shm_bytes)},
      {"stop-signal", 0, "SIGNAL", "What 'berth stop' sends first (the image's, or TERM)",
       std::move(read_signal)},
      {"memory", 'm', "BYTES", "At most this much memory, such as 512m; 0: no limit",
       read_bytes(r.memory_bytes)},
      {"cpus", 0, "NUMBER", "At most this many CPUs, such as 1.5; 0: no limit", &o.cpus},
      {"pids-limit", 0, "NUMBER", "At most this many processes; 0 or -1: no limit",
       read_integer(r.pids_limit)},
      {"gpus", 0, "GPUS", "all, none, N, or device=LIST; capabilities=LIST", &r.gpus},
      {"gpu-driver",
       0,
       "MODE",
       "The driver's files: bind, volume, copy, image or none",
       &o.gpu_driver,
       {"bind", "volume", "copy", "image", "none"}},
      {"immutable", 0, "", "The same as --read-only --gpu-driver image", &o.immutable},
      {"device", 0, "VENDOR/CLASS=NAME", "Give a CDI device, such as nvidia.com/gpu=0", &r.devices},
      {"pull",
       0,
       "WHEN",
       "Pull the image: missing, always or never",
       &o.pull,
       {"missing", "always", "never"}},
      {"quiet", 'q', "", "Show no progress of a pull", &r.quiet},
      {"dry-run", 0, "", "Print what would be done, and do nothing", &o.dry_run},
      {"explain", 0, "", "Print what GPUs would be given and why, and do nothing", &o.explain},
      {"format",
       0,
       "FORMAT",
       "Of --dry-run and --explain: text or json",
       &o.format,
       {"text", "json"}},
  };
  add_registry_flags(table, r.registry);
  return table;
}

Result<std::vector<std::string>> read_environment(const Options& o) {
  std::vector<std::string> entries;
  for (const std::string& file : o.env_files) {
    for (std::string& entry : TRY(engine::read_env_file(file))) entries.push_back(std::move(entry));
  }
  entries.insert(entries.end(), o.environment.begin(), o.environment.end());
  return entries;
}

/// The flags that are more than text, checked before anything is done.
Result<engine::RunRequest> complete(const Session& session, const Options& o,
                                    std::vector<std::string> arguments) {
  engine::RunRequest request = o.request;
  request.image = std::move(arguments[0]);
  request.program = gpu::program_of(session.program);
  request.command.assign(std::make_move_iterator(arguments.begin() + 1),
                         std::make_move_iterator(arguments.end()));
  request.environment = TRY(read_environment(o));
  for (const std::string& text : o.volumes) {
    request.volumes.push_back(TRY(engine::parse_volume(text, session.working_directory)));
  }
  for (const std::string& text : o.tmpfs) {
    request.tmpfs.push_back(TRY(engine::parse_tmpfs(text)));
  }
  if (o.cpus) request.cpu_quota_millis = TRY(engine::parse_cpus(*o.cpus));
  if (!o.gpu_driver.empty()) {
    request.gpu_driver =
        TRY(policy::from_json_text(o.gpu_driver, std::type_identity<policy::DriverMode>()));
  }
  if (o.immutable) {
    bool image = !request.gpu_driver || *request.gpu_driver == policy::DriverMode::image;
    if (!image) {
      return make_error(Kind::usage, "'--immutable' and '--gpu-driver' contradict each other");
    }
    request.gpu_driver = policy::DriverMode::image;
    request.read_only = true;
  }
  if (o.network == "host") request.network = engine::Network::host;
  if (o.pull == "always") request.pull = engine::PullPolicy::always;
  if (o.pull == "never") request.pull = engine::PullPolicy::never;
  bool talks = request.terminal && !request.detach && !o.dry_run && !o.explain;
  if (talks && request.interactive && !session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "'--tty' with '--interactive' needs a terminal on stdin",
                      "berth run -i, without -t");
  }
  return request;
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  engine::RunRequest request = TRY(complete(session, o, std::move(arguments)));
  TransferDisplay display(session, Stream::err, Direction::pull, request.quiet);
  if (o.explain) return explain_run(session, request, display, o.format);
  if (o.dry_run) return dry_run(session, request, display, o.format);
  engine::RunOutcome outcome = TRY(engine::run(session.context, request, display.progress()));
  if (outcome.command_error) session.report.error(*outcome.command_error);
  if (outcome.stream_error) {
    session.report.error(*outcome.stream_error);
    if (outcome.status == 0) return 1;  // docker's
  }
  if (request.detach && !outcome.command_error) print(session, outcome.id + "\n");
  return outcome.status;
}

constexpr Elsewhere kElsewhere[] = {{"nv", "--gpus all"},
                                    {"nvccli", "--gpus all"},
                                    {"rocm", "--gpus all,driver=amd"},
                                    {"runtime", "--gpus all, which needs no other runtime"},
                                    {"bind", "-v SOURCE:DESTINATION"}};

}  // namespace

extern const Verb run_verb;
const Verb run_verb{
    .text = {.name = "run",
             .arguments = "IMAGE [COMMAND [ARG...]]",
             .summary = "Create and start a container from an image",
             .example = "berth run --rm -it --gpus all debian:12 bash",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .flags_end = FlagsEnd::at_first_argument,
    .elsewhere = kElsewhere,
    .error_status = 125,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
