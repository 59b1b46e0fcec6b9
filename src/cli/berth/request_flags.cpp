// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/request_flags.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/flag_values.hpp"
#include "cli/berth/namespace_flags.hpp"
#include "engine/context/absolute_path.hpp"
#include "engine/draft/settle.hpp"
#include "engine/image/file.hpp"
#include "engine/network/default_network.hpp"
#include "engine/request/env_file.hpp"
#include "engine/request/hooks_directory.hpp"
#include "engine/request/keep_id.hpp"
#include "engine/request/security.hpp"
#include "engine/request/text.hpp"
#include "engine/run/run.hpp"
#include "engine/site/environment_file.hpp"

namespace berth::cli {
namespace {

/// What was typed is what `inspect` shows.
Result<std::string> read_signal_text(std::string_view text) {
  TRY(engine::parse_signal(text));
  return std::string(text);
}

Result<std::string> check_hooks(std::string_view path) {
  TRY(engine::check_hooks_directory(std::string(path)));
  return std::string(path);
}

/// One of `words`; the error says more than which there are.
ReadValue read_word(std::string& target, std::vector<std::string_view> words,
                    const char* expected) {
  return [&target, words = std::move(words), expected](std::string_view text) -> Result<void> {
    if (std::ranges::find(words, text) == words.end()) {
      return make_error(Kind::usage, expected);
    }
    target = text;
    return {};
  };
}

ReadValue read_time(int64_t& target) {
  return [&target](std::string_view text) -> Result<void> {
    auto time = TRY(engine::parse_duration(text));
    target = time.count();
    return {};
  };
}

/// "true", which stands for no value, is for ever.
Result<void> read_wait(std::string_view text, std::optional<int64_t>& target) {
  if (text == "true") {
    target = 0;
    return {};
  }
  auto time = engine::parse_duration(text);
  bool good = time.ok() && time->count() > 0;
  if (!good) return make_error(Kind::usage, "expected nothing, or a time such as 30s or 1h");
  target = time->count();
  return {};
}

ReadValue read_number(int64_t& target) {
  return [&target](std::string_view text) -> Result<void> {
    auto number = parse_i64(text);
    if (!number) return make_error(Kind::usage, "expected a whole number");
    target = *number;
    return {};
  };
}

/// Docker's: no name is any, and a slash before it does not count.
ReadValue read_name(std::optional<std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target.reset();
    if (text.starts_with('/')) text.remove_prefix(1);
    if (!text.empty()) target = std::string(text);
    return {};
  };
}

/// "512m", and "-1" for no limit.
ReadValue read_swap(std::optional<int64_t>& target) {
  return [&target](std::string_view text) -> Result<void> {
    auto bytes = parse_bytes(text);
    bool fits = bytes && *bytes <= static_cast<uint64_t>(INT64_MAX);
    if (text == "-1") {
      target = -1;
    } else if (fits) {
      target = static_cast<int64_t>(*bytes);
    } else {
      return make_error(Kind::usage, "expected a size such as 2g, or -1");
    }
    return {};
  };
}

FlagTable process_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"detach-keys", 0, "KEYS", "What detaches from the container (ctrl-p,ctrl-q)",
       &o.call.detach_keys},
      {"attach", 'a', "STREAM", "Attach to stdin, stdout or stderr",
       append_to(o.call.attach, engine::parse_stream)},
      {"entrypoint", 0, "COMMAND", "Replace the image's entrypoint; '' clears it", &r.entrypoint},
      {"env", 'e', "NAME[=VALUE]", "Set an environment variable, or pass the caller's",
       &o.environment},
      file_flag("env-file", 0, "Read environment variables from FILE", &o.env_files),
      {"environment",
       0,
       "FILE|NAME",
       "What an EDF says, CSCS's environment definition file",
       &o.environment_file,
       {},
       Complete::file},
      {"group-add", 0, "GROUP", "Add a group, by name or number; keep-groups: the caller's",
       &r.group_add},
      {"init", 0, "", "Run a first process that reaps and passes signals on", &r.init},
      {"interactive", 'i', "", "Keep stdin open", &r.interactive},
      {"sig-proxy", 0, "", "Pass signals on to the command (true)", &o.call.signal_proxy},
      {"stop-signal", 0, "SIGNAL", "What 'berth stop' sends first (the image's, or TERM)",
       read_into(r.stop_signal, read_signal_text)},
      {"stop-timeout", 0, "SECONDS", "How long 'berth stop' waits (10); -1: for ever",
       read_integer(r.stop_timeout)},
      {"tty", 't', "", "Give the command a terminal", &r.terminal},
      {"ulimit", 0, "TYPE=SOFT[:HARD]", "Limit a process, such as nofile=1024:2048",
       append_to(r.ulimits, engine::parse_ulimit)},
      {"user", 'u', "USER[:GROUP]", "Run as this user", &r.user},
      {"workdir", 'w', "DIR", "Start in DIR", &r.workdir},
  };
}

FlagTable container_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"annotation", 0, "NAME=VALUE", "Add an annotation to the OCI configuration",
       add_to(r.annotations, engine::parse_annotation)},
      file_flag("cidfile", 0, "Write the container's id to FILE, which must not exist",
                &o.call.cid_file),
      {"disable-content-trust", 0, "", "Accepted: images are verified by their digests",
       &o.no_trust},
      {"isolation", 0, "NAME", "Only default: Linux has one, Windows has a choice",
       read_isolation(": Linux has one isolation, only Windows has a choice")},
      {"label", 'l', "NAME[=VALUE]", "Label the container", &o.labels},
      file_flag("label-file", 0, "Read labels from FILE", &o.label_files),
      {"log-driver", 0, "DRIVER", "Keep the output as json-file, local or none",
       read_into(r.log.driver, engine::parse_log_driver)},
      {"log-opt", 0, "NAME=VALUE", "max-size=BYTES or max-file=NUMBER",
       [&r](std::string_view text) { return engine::parse_log_option(text, r.log); }},
      {"name", 0, "NAME", "Name the container", read_name(r.name)},
      {"replace", 0, "", "Remove a container of the same name first, running or not",
       &o.call.replace},
      {"platform", 0, "OS/ARCH", "Of the image that is pulled, such as linux/arm64",
       read_platform(o.call.platform)},
      {"force", 0, "", "Pull also what does not run on this machine", &o.call.force},
      {"strict", 0, "", "No start with an idle GPU or a limit that cannot be set", &o.call.strict},
      choice_flag("pull", "WHEN", "Pull the image: missing, always or never", &o.pull,
                  {"missing", "always", "never"}),
      {"quiet", 'q', "", "Show no progress of a pull", &o.call.quiet},
      {"runtime", 0, "NAME", "There is one; nvidia: GPUs as the image's variables say",
       read_word(o.runtime, {"berth", "crun", "io.containerd.runc.v2", "nvidia", "runc"},
                 "expected berth, crun, nvidia or runc; GPUs are given by --gpus all, other "
                 "devices by --device")},
      {"hooks-dir", 0, "DIR", "GPUs as NVIDIA's hook gives them; no hook is run",
       append_to(o.hooks_directories, check_hooks)},
      {"restart", 0, "POLICY", "no, on-failure[:MOST], always or unless-stopped",
       read_into(r.restart, engine::parse_restart)},
      {"rm", 0, "", "Remove the container when it ends", &r.remove},
  };
}

FlagTable health_flags(RequestOptions& o) {
  engine::Health& health = o.request.health;
  return {
      {"health-cmd", 0, "COMMAND", "Check the container's health by this", &health.command},
      {"health-interval", 0, "TIME", "Between two checks (30s)", read_time(health.interval)},
      {"health-retries", 0, "NUMBER", "Unhealthy after so many failures (3)",
       read_number(health.retries)},
      {"health-start-period", 0, "TIME", "Failures do not count so long after the start",
       read_time(health.start_period)},
      {"health-timeout", 0, "TIME", "A check that takes longer has failed (30s)",
       read_time(health.timeout)},
      {"no-healthcheck", 0, "", "Do without the image's health check", &health.off},
  };
}

FlagTable storage_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"read-only", 0, "", "Make the root file system read-only", &r.read_only},
      {"rootfs", 0, "", "IMAGE is a directory, the root file system as it is", &o.rootfs},
      {"shm-size", 0, "BYTES", "The size of /dev/shm (64m)", read_bytes(r.shm_bytes)},
      {"mount", 0, "OPTIONS", "type=bind|volume|tmpfs|image,src=SOURCE,dst=TARGET[,ro]", &o.mounts},
      {"tmpfs", 0, "TARGET[:OPTIONS]", "Mount an empty file system in memory", &o.tmpfs},
      {"volume",
       'v',
       "[SOURCE:]TARGET[:ro]",
       "Mount a file or directory of the host, or a volume",
       &o.volumes,
       {},
       Complete::file},
      {"volumes-from", 0, "CONTAINER[:ro]", "Mount what that container has mounted",
       &r.volumes_from},
  };
}

FlagTable limit_flags(RequestOptions& o) {
  engine::Limits& l = o.request.limits;
  return {
      {"blkio-weight", 0, "NUMBER", "A share of disk time, 10 to 1000; 0: no weight",
       &l.blkio_weight},
      {"blkio-weight-device", 0, "DEVICE:NUMBER", "The same on one block device",
       append_to(l.blkio_weight_device, engine::parse_device_weight)},
      choice_flag("cgroups", "MODE", "No meaning here: it has one where one can be made",
                  &o.cgroups, {"enabled", "disabled", "no-conmon", "split"}),
      {"cgroup-parent", 0, "PATH", "Make the container's control group below PATH",
       &o.request.cgroup_parent},
      {"cpu-period", 0, "MICROSECONDS", "The period of --cpu-quota", &l.cpu_period},
      {"cpu-quota", 0, "MICROSECONDS", "At most this much CPU time in a period",
       read_integer(l.cpu_quota)},
      {"cpu-rt-period", 0, "MICROSECONDS", "The period of --cpu-rt-runtime", &l.cpu_rt_period},
      {"cpu-rt-runtime", 0, "MICROSECONDS", "At most this much real-time in a period",
       read_integer(l.cpu_rt_runtime)},
      {"cpu-shares", 'c', "NUMBER", "A share of CPU time beside others (1024)", &l.cpu_shares},
      {"cpus", 0, "NUMBER", "At most this many CPUs, such as 1.5; 0: no limit",
       read_into(l.cpu_millis, engine::parse_cpus)},
      {"cpuset-cpus", 0, "LIST", "Run on these CPUs alone, such as 0-3,7", &l.cpuset_cpus},
      {"cpuset-mems", 0, "LIST", "Use the memory of these nodes alone", &l.cpuset_mems},
      {"device-read-bps", 0, "DEVICE:BYTES", "Read at most so much a second",
       append_to(l.device_read_bps, engine::parse_device_bytes)},
      {"device-read-iops", 0, "DEVICE:NUMBER", "Read at most so often a second",
       append_to(l.device_read_iops, engine::parse_device_rate)},
      {"device-write-bps", 0, "DEVICE:BYTES", "Write at most so much a second",
       append_to(l.device_write_bps, engine::parse_device_bytes)},
      {"device-write-iops", 0, "DEVICE:NUMBER", "Write at most so often a second",
       append_to(l.device_write_iops, engine::parse_device_rate)},
      {"memory", 'm', "BYTES", "At most this much memory, such as 512m; 0: no limit",
       read_bytes(l.memory_bytes)},
      {"memory-reservation", 0, "BYTES", "Give memory back down to this when it is scarce",
       read_bytes(l.memory_reservation_bytes)},
      {"memory-swap", 0, "BYTES", "At most this much memory and swap together; -1: no limit",
       read_swap(l.memory_swap_bytes)},
      {"memory-swappiness", 0, "NUMBER", "How readily memory is swapped, 0 to 100",
       read_integer(l.memory_swappiness)},
      {"oom-kill-disable", 0, "", "Let it wait for memory instead of being killed",
       &l.oom_kill_disable},
      {"oom-score-adj", 0, "NUMBER", "Be killed later (-1000) or sooner (1000)",
       read_integer(o.request.oom_score_adj)},
      {"pids-limit", 0, "NUMBER", "At most this many processes; 0 or -1: no limit",
       read_integer(l.pids)},
  };
}

FlagTable right_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"cap-add", 0, "CAPABILITY", "Give a capability, such as NET_ADMIN; ALL: every one",
       &r.security.cap_add},
      {"cap-drop", 0, "CAPABILITY", "Take a capability away; ALL: every one", &r.security.cap_drop},
      {"device", 0, "DEVICE", "nvidia.com/gpu=0, or /dev/SOURCE[:/dev/TARGET][:rwm]", &o.devices},
      {"device-cgroup-rule", 0, "RULE", "Allow devices, such as 'c 195:* rwm'",
       append_to(r.device_cgroup_rules, engine::parse_device_rule)},
      {"gpu-cores", 0, "PERCENT", "At most this part of each GPU's multiprocessors, by MPS",
       [&r](std::string_view text) -> Result<void> {
         r.gpu_cores = TRY(engine::parse_gpu_cores(text));
         return {};
       }},
      choice_flag("gpu-driver", "MODE", "The driver's files: bind, volume, copy, image or none",
                  &o.gpu_driver, {"bind", "volume", "copy", "image", "none"}),
      {"gpu-memory", 0, "MOST[,KEPT]", "At most this much of each GPU's memory, such as 10g",
       [&r](std::string_view text) -> Result<void> {
         r.gpu_memory = TRY(engine::parse_gpu_memory(text));
         return {};
       }},
      {"gpus", 0, "GPUS", "all, N, N,model=NAME, device=LIST, from:CONTAINER or none", &r.gpus},
      {"gpus-bind", 0, "", "Keep to processors beside the GPUs, unless =false", &r.gpus_bind},
      {"gpus-exclusive", 0, "", "Let nobody else have these GPUs meanwhile", &r.gpus_exclusive},
      {"immutable", 0, "", "The same as --read-only --gpu-driver image", &o.immutable},
      {"mpi", 0, "MODE", "Whose MPI a rank gets: auto, host, image or none",
       read_word(o.mpi.mode, {"auto", "host", "image", "none"},
                 "expected --mpi auto, --mpi host, --mpi image or --mpi none")},
      choice_flag("mpi-compatibility", "RULE",
                  "How alike the host's MPI has to be: major, full or strict", &o.mpi.compatibility,
                  {"major", "full", "strict"}),
      {"privileged", 0, "", "Give all capabilities and devices, hide nothing",
       &r.security.privileged},
      {"wait-gpus", 0, "", "Wait for GPUs that others have, for ever or =TIME",
       [&r](std::string_view text) { return read_wait(text, r.wait_gpus); }},
      {"security-opt", 0, "OPTION", "no-new-privileges, seccomp=FILE, apparmor=NAME, …",
       [&r](std::string_view text) { return engine::parse_security_option(text, r.security); }},
  };
}

Result<std::vector<std::string>> read_entries(const std::vector<std::string>& files,
                                              const std::vector<std::string>& typed) {
  std::vector<std::string> entries;
  for (const std::string& file : files) {
    for (std::string& entry : TRY(engine::read_env_file(file))) entries.push_back(std::move(entry));
  }
  entries.insert(entries.end(), typed.begin(), typed.end());
  return entries;
}

Result<void> read_labels(const RequestOptions& o, engine::RunRequest& request) {
  for (const std::string& entry : TRY(read_entries(o.label_files, o.labels))) {
    auto label = engine::parse_label(entry);
    if (!label.ok()) {
      return make_error(Kind::usage, "invalid label " + quote(entry) + ": " + label.error().what);
    }
    request.labels[label->first] = std::move(label->second);
  }
  return {};
}

// What starts with '/' is a path, all else the name of a CDI device.
Result<void> read_devices(const RequestOptions& o, engine::RunRequest& request) {
  for (const std::string& text : o.devices) {
    if (!text.starts_with('/')) {
      request.devices.push_back(text);
      continue;
    }
    auto device = engine::parse_host_device(text);
    if (!device.ok()) {
      return make_error(Kind::usage, "--device " + quote(text) + ": " + device.error().what);
    }
    request.host_devices.push_back(std::move(*device));
  }
  return {};
}

Result<void> read_gpu_driver(const RequestOptions& o, engine::RunRequest& request) {
  if (!o.gpu_driver.empty()) {
    request.gpu_driver = TRY(parse_enum<policy::DriverMode>(o.gpu_driver));
  }
  if (!o.immutable) return {};
  bool image = !request.gpu_driver || *request.gpu_driver == policy::DriverMode::image;
  if (!image) {
    return make_error(Kind::usage, "'--immutable' and '--gpu-driver' contradict each other");
  }
  request.gpu_driver = policy::DriverMode::image;
  request.read_only = true;
  return {};
}

Result<void> read_mounts(const Session& session, const RequestOptions& o,
                         engine::RunRequest& request) {
  for (const std::string& text : o.volumes) {
    request.volumes.push_back(TRY(engine::parse_volume(text, session.working_directory)));
  }
  for (const std::string& text : o.mounts) {
    auto mount = TRY(engine::parse_mount(text));
    if (auto* volume = std::get_if<engine::Volume>(&mount)) {
      request.volumes.push_back(std::move(*volume));
    } else if (auto* image = std::get_if<engine::ImageMount>(&mount)) {
      image->is_file = engine::is_image_path(image->source);
      if (image->is_file) image->source = TRY(engine::find_image_file(image->source));
      request.image_mounts.push_back(std::move(*image));
    } else {
      request.tmpfs.push_back(std::move(std::get<engine::Tmpfs>(mount)));
    }
  }
  for (const std::string& text : o.tmpfs) {
    request.tmpfs.push_back(TRY(engine::parse_tmpfs(text)));
  }
  return {};
}

/// Of --environment; an empty one without.
Result<edf::Definition> read_definition(const Session& session, const RequestOptions& o) {
  if (!o.environment_file) return edf::Definition();
  return engine::read_environment_file(session.context.environment, *o.environment_file);
}

/// The image of an environment file stands where it would have been typed.
Result<void> name_image(const edf::Definition& definition, const RequestOptions& o,
                        std::vector<std::string>& arguments) {
  std::string image = TRY(engine::image_of(definition));
  if (!image.empty() && o.rootfs) {
    return make_error(Kind::usage,
                      "'--rootfs' and the image of the environment contradict each other");
  }
  if (!image.empty()) arguments.insert(arguments.begin(), std::move(image));
  if (!arguments.empty()) return {};
  return make_error(Kind::usage, "environment " + quote(*o.environment_file) + " names no image",
                    "an image after it, or 'image = ...' in its file");
}

}  // namespace

Arity request_arity(const RequestOptions& o) {
  return {o.environment_file ? size_t{0} : size_t{1}};
}

std::string container_beside(const RequestOptions& o) {
  constexpr std::string_view kContainer = "container:";
  if (o.network.mode.starts_with(kContainer)) return o.network.mode.substr(kContainer.size());
  return engine::joined_container(o.request);
}

std::string replaced_container(const RequestOptions& o) {
  return o.call.replace && o.request.name ? *o.request.name : "";
}

void sort_flags(FlagTable& table) {
  std::ranges::stable_sort(table, [](const Flag& a, const Flag& b) { return a.name < b.name; });
}

void add_request_flags(FlagTable& table, RequestOptions& o) {
  for (auto make : {process_flags, container_flags, health_flags, storage_flags, namespace_flags,
                    limit_flags, right_flags}) {
    FlagTable more = make(o);
    std::move(more.begin(), more.end(), std::back_inserter(table));
  }
  add_registry_flags(table, o.call.registry);
}

std::string network_footnote(const engine::Environment& environment, const std::string& config) {
  auto usual = engine::default_network(environment, config);
  if (!usual.ok()) return "";
  return "The default network here is '" + engine::to_json_text(usual->network) + "' (" +
         usual->source + ").\n";
}

Result<void> read_request(const Session& session, std::vector<std::string> arguments,
                          RequestOptions& o) {
  engine::RunRequest& request = o.request;
  edf::Definition definition = TRY(read_definition(session, o));
  TRY(name_image(definition, o, arguments));
  if (o.rootfs) {
    request.rootfs = TRY(engine::absolute_path(arguments[0], session.working_directory));
  } else {
    request.image = std::move(arguments[0]);
    request.image_file = engine::is_image_path(request.image);
    if (request.image_file) request.image = TRY(engine::find_image_file(request.image));
  }
  // The runtime and the hook of NVIDIA give what the image's variables ask for, as its program did.
  bool nvidia = o.runtime == "nvidia" || !o.hooks_directories.empty();
  request.program = nvidia ? gpu::Program::nvidia_docker : gpu::program_of(session.program);
  request.command.assign(std::make_move_iterator(arguments.begin() + 1),
                         std::make_move_iterator(arguments.end()));
  if (o.call.replace && !request.name) {
    return make_error(Kind::usage, "'--replace' needs a name", "--replace --name NAME");
  }
  if (!o.hooks_directories.empty()) {
    session.context.log.warn(
        "--hooks-dir: GPUs are given as NVIDIA's hook gives them, no hook is run");
  }
  if (!o.no_trust) {
    return make_error(Kind::unsupported, "'--disable-content-trust=false': no signatures are read");
  }
  // podman's and buildah's form of several words, which docker would look for as a program.
  if (request.entrypoint && request.entrypoint->starts_with('[')) {
    return make_error(Kind::usage, "--entrypoint: one program, whose arguments come after IMAGE",
                      "--entrypoint PROGRAM IMAGE ARG...");
  }
  request.environment = TRY(read_entries(o.env_files, o.environment));
  TRY(read_labels(o, request));
  TRY(read_devices(o, request));
  TRY(engine::read_network(session.context, o.network, request));
  engine::keep_own_id(session.context, request);
  TRY(read_gpu_driver(o, request));
  TRY(read_mounts(session, o, request));
  if (o.environment_file) {
    TRY(engine::add_definition(definition, session.working_directory, session.context.log,
                               request));
  }
  TRY(engine::settle_mpi(session.context, o.mpi, o.network, request, o.call));
  auto& seccomp = request.security.seccomp;
  // The profile is kept, not its path: the file may be another one at the next start.
  if (seccomp && *seccomp != "unconfined") seccomp = TRY(engine::read_profile(*seccomp));
  o.request.strict_limits = o.call.strict;
  if (o.pull == "always") o.call.pull = engine::PullPolicy::always;
  if (o.pull == "never") o.call.pull = engine::PullPolicy::never;
  return engine::settle(session.context, request);
}

}  // namespace berth::cli
