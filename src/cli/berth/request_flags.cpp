// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/request_flags.hpp"

#include <iterator>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/env_file.hpp"
#include "engine/run.hpp"

namespace berth::cli {
namespace {

Result<std::vector<std::string>> read_environment(const RequestOptions& o) {
  std::vector<std::string> entries;
  for (const std::string& file : o.env_files) {
    for (std::string& entry : TRY(engine::read_env_file(file))) entries.push_back(std::move(entry));
  }
  entries.insert(entries.end(), o.environment.begin(), o.environment.end());
  return entries;
}

}  // namespace

void add_request_flags(FlagTable& table, RequestOptions& o) {
  engine::RunRequest& r = o.request;
  ReadValue read_signal = [&r](std::string_view text) -> Result<void> {
    r.stop_signal = TRY(engine::parse_signal(text));
    return {};
  };
  FlagTable more{
      {"interactive", 'i', "", "Keep stdin open", &r.interactive},
      {"tty", 't', "", "Give the command a terminal", &r.terminal},
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
       read_bytes(r.limits.memory_bytes)},
      {"cpus", 0, "NUMBER", "At most this many CPUs, such as 1.5; 0: no limit", &o.cpus},
      {"pids-limit", 0, "NUMBER", "At most this many processes; 0 or -1: no limit",
       read_integer(r.limits.pids)},
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
      {"quiet", 'q', "", "Show no progress of a pull", &o.call.quiet},
  };
  std::move(more.begin(), more.end(), std::back_inserter(table));
  add_registry_flags(table, o.call.registry);
}

Result<void> read_request(const Session& session, std::vector<std::string> arguments,
                          RequestOptions& o) {
  engine::RunRequest& request = o.request;
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
  if (o.cpus) request.limits.cpu_millis = TRY(engine::parse_cpus(*o.cpus));
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
  if (o.pull == "always") o.call.pull = engine::PullPolicy::always;
  if (o.pull == "never") o.call.pull = engine::PullPolicy::never;
  engine::settle(request, session.context.environment);
  return {};
}

}  // namespace berth::cli
